import { type CallContext } from '@atoll/contracts';
import {
  connections,
  type CompatibleInstances,
  type ListCompatibleInstances,
  type ConnectionList,
  type ReadConnections,
  type RefreshBegun,
  type RefreshConnections,
} from '@atoll/contracts/gpuaas';
import { Handle, type Handlers, type Json } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { ConnectionsService } from './connection.service.js';

@Controller()
export class ConnectionsController implements Handlers<typeof connections> {
  constructor(private readonly connections: ConnectionsService) {}

  @Handle(connections.read)
  read(input: ReadConnections, context: CallContext): Promise<ConnectionList | Json<ConnectionList>> {
    return this.connections.read(input, context);
  }

  @Handle(connections.refresh)
  refresh(input: RefreshConnections, context: CallContext): Promise<RefreshBegun> {
    return this.connections.refresh(input, context);
  }

  @Handle(connections.compatibleInstances)
  compatibleInstances(
    input: ListCompatibleInstances,
    context: CallContext,
  ): Promise<CompatibleInstances | Json<CompatibleInstances>> {
    return this.connections.compatibleInstances(input, context);
  }
}
