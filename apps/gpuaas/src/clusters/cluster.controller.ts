import { type CallContext } from '@atoll/contracts';
import { clusters, type Cluster, type ClusterChanged, type GpuaasPath, type SetCluster } from '@atoll/contracts/gpuaas';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { ClustersService } from './cluster.service.js';

@Controller()
export class ClustersController implements Handlers<typeof clusters> {
  constructor(private readonly clusters: ClustersService) {}

  @Handle(clusters.set)
  set(input: SetCluster, context: CallContext): Promise<Cluster> {
    return this.clusters.set(input, context);
  }

  @Handle(clusters.get)
  get(input: GpuaasPath, context: CallContext): Promise<Cluster> {
    return this.clusters.get(input, context);
  }

  @Handle(clusters.check)
  check(input: GpuaasPath, context: CallContext): Promise<Cluster> {
    return this.clusters.check(input, context);
  }

  @Handle(clusters.lookUp)
  lookUp(input: GpuaasPath, context: CallContext): Promise<ClusterChanged> {
    return this.clusters.lookUp(input, context);
  }
}
