import { type CallContext, type Nothing } from '@atoll/contracts';
import {
  baremetalNodes,
  type BaremetalNode,
  type BaremetalNodePage,
  type BaremetalNodePath,
  type ListBaremetalNodes,
  type RegisterBaremetalNode,
  type ReinstallCallback,
  type UpdateBaremetalNode,
} from '@atoll/contracts/gpuaas';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { BaremetalNodesService } from './baremetal-node.service.js';
import { ReinstallCallbacks } from './reinstall-callbacks.js';

@Controller()
export class BaremetalNodesController implements Handlers<typeof baremetalNodes> {
  constructor(
    private readonly nodes: BaremetalNodesService,
    private readonly callbacks: ReinstallCallbacks,
  ) {}

  @Handle(baremetalNodes.register)
  register(input: RegisterBaremetalNode, context: CallContext): Promise<BaremetalNode> {
    return this.nodes.register(input, context);
  }

  @Handle(baremetalNodes.list)
  list(input: ListBaremetalNodes, context: CallContext): Promise<BaremetalNodePage> {
    return this.nodes.list(input, context);
  }

  @Handle(baremetalNodes.get)
  get(input: BaremetalNodePath, context: CallContext): Promise<BaremetalNode> {
    return this.nodes.get(input, context);
  }

  @Handle(baremetalNodes.update)
  update(input: UpdateBaremetalNode, context: CallContext): Promise<BaremetalNode> {
    return this.nodes.update(input, context);
  }

  @Handle(baremetalNodes.check)
  check(input: BaremetalNodePath, context: CallContext): Promise<BaremetalNode> {
    return this.nodes.check(input, context);
  }

  @Handle(baremetalNodes.accept)
  accept(input: BaremetalNodePath, context: CallContext): Promise<BaremetalNode> {
    return this.nodes.accept(input, context);
  }

  @Handle(baremetalNodes.delete)
  delete(input: BaremetalNodePath, context: CallContext): Promise<Nothing> {
    return this.nodes.remove(input, context);
  }

  @Handle(baremetalNodes.reinstalled)
  reinstalled(input: ReinstallCallback): Promise<Nothing> {
    return this.callbacks.receive(input);
  }
}
