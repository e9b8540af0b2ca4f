import { Body, Controller, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import { RecordUsage, UsageRecorded, usage } from '@atoll/contracts/billing';
import { Rpc } from '@atoll/rpc';
import { Answers } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';
import { ConfigureRoute } from '../http/route-config.js';

const maxBatchBytes = 768 * 1024;

@ApiTags('Prices and usage')
@Controller('usage-events')
export class UsageEventsController {
  constructor(private readonly rpc: Rpc) {}

  @Post()
  @ConfigureRoute({ operatorOnly: true, maxBodyBytes: maxBatchBytes, exactNumbers: 'quantity' })
  @Answers(
    200,
    UsageRecorded,
    'Record usage facts',
    'Stores facts about what resources hold: all of them, or none where one is invalid. Requires platform_admin.',
  )
  recordUsage(@Body() body: RecordUsage, @Context() context: CallContext): Promise<UsageRecorded> {
    return this.rpc.call(usage.record, body, context);
  }
}
