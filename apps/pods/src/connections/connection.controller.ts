import { type CallContext } from '@atoll/contracts';
import { type HoldingTeam } from '@atoll/contracts/gpuaas';
import { podConnections, type PodConnections } from '@atoll/contracts/pods';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { ConnectionsService } from './connection.service.js';

@Controller()
export class ConnectionsController implements Handlers<typeof podConnections> {
  constructor(private readonly connections: ConnectionsService) {}

  @Handle(podConnections.read)
  read(input: HoldingTeam, context: CallContext): Promise<PodConnections> {
    return this.connections.read(input, context);
  }
}
