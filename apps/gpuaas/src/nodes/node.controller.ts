import { type CallContext } from '@atoll/contracts';
import {
  nodes,
  type GpuNode,
  type ListNodes,
  type NodePage,
  type NodePath,
  type RegisterNode,
} from '@atoll/contracts/gpuaas';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { NodesService } from './node.service.js';

@Controller()
export class NodesController implements Handlers<typeof nodes> {
  constructor(private readonly nodes: NodesService) {}

  @Handle(nodes.register)
  register(input: RegisterNode, context: CallContext): Promise<GpuNode> {
    return this.nodes.register(input, context);
  }

  @Handle(nodes.list)
  list(input: ListNodes, context: CallContext): Promise<NodePage> {
    return this.nodes.list(input, context);
  }

  @Handle(nodes.get)
  get(input: NodePath, context: CallContext): Promise<GpuNode> {
    return this.nodes.get(input, context);
  }

  @Handle(nodes.initialise)
  initialise(input: NodePath, context: CallContext): Promise<GpuNode> {
    return this.nodes.command('initialise', input, context);
  }

  @Handle(nodes.reset)
  reset(input: NodePath, context: CallContext): Promise<GpuNode> {
    return this.nodes.command('reset', input, context);
  }

  @Handle(nodes.cordon)
  cordon(input: NodePath, context: CallContext): Promise<GpuNode> {
    return this.nodes.command('cordon', input, context);
  }

  @Handle(nodes.uncordon)
  uncordon(input: NodePath, context: CallContext): Promise<GpuNode> {
    return this.nodes.command('uncordon', input, context);
  }
}
