import { Body, Controller, Delete, Get, Param, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import {
  BaremetalCredentials,
  BaremetalInstance,
  BaremetalPage,
  BaremetalPath,
  ListBaremetal,
  RequestBaremetal,
  baremetal,
} from '@atoll/contracts/gpuaas';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage, Refuses } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Bare metal')
@Controller('baremetal')
export class BaremetalController {
  constructor(private readonly rpc: Rpc) {}

  @Post('request')
  @Answers(
    202,
    BaremetalInstance,
    'Request a bare-metal host',
    'Requests a host that meets the requirements. The request waits until one is free; billing starts when the instance is `Active`. Requires team_owner, team_admin or member.',
  )
  @Refuses('spec_mismatch')
  requestBaremetal(@Body() body: RequestBaremetal, @Context() context: CallContext): Promise<BaremetalInstance> {
    return this.rpc.call(baremetal.request, body, context);
  }

  @Get()
  @AnswersPage(
    BaremetalPage,
    1,
    'List bare-metal instances',
    'Returns the instances of a team. Any member of the team may read them.',
  )
  listBaremetal(@Query() query: ListBaremetal, @Context() context: CallContext): Promise<BaremetalPage> {
    return this.rpc.call(baremetal.list, query, context);
  }

  @Get(':instance_id')
  @Answers(
    200,
    BaremetalInstance,
    'Get a bare-metal instance',
    'Returns an instance with its last error and the ledger of attempts. Any member of the team may read it.',
  )
  getBaremetal(@Param() path: BaremetalPath, @Context() context: CallContext): Promise<BaremetalInstance> {
    return this.rpc.call(baremetal.get, path, context);
  }

  @Delete(':instance_id')
  @Answers(
    202,
    BaremetalInstance,
    'End a bare-metal instance',
    'Cancels a request or releases a host. Billing ends with this call, which may be repeated. Requires team_owner, team_admin or member.',
  )
  endBaremetal(@Param() path: BaremetalPath, @Context() context: CallContext): Promise<BaremetalInstance> {
    return this.rpc.call(baremetal.end, path, context);
  }

  @Get(':instance_id/credentials')
  @Refuses('conflict')
  @Answers(
    200,
    BaremetalCredentials,
    'Get the credentials of a bare-metal instance',
    'Returns the SSH credentials of the instance while it is `Active`. Each read is recorded. The password does not change when a member leaves the team: change it on the host with passwd. Requires team_owner, team_admin or member.',
  )
  getBaremetalCredentials(
    @Param() path: BaremetalPath,
    @Context() context: CallContext,
  ): Promise<BaremetalCredentials> {
    return this.rpc.call(baremetal.credentials, path, context);
  }
}
