import { type CallContext } from '@atoll/contracts';
import { usage, type UsageBatch, type UsageRecorded } from '@atoll/contracts/billing';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { UsageService } from './usage.service.js';

@Controller()
export class UsageController implements Handlers<typeof usage> {
  constructor(private readonly usage: UsageService) {}

  @Handle(usage.record)
  record(input: UsageBatch, context: CallContext): Promise<UsageRecorded> {
    return this.usage.record(input, context);
  }
}
