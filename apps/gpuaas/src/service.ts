import { clusterPurpose } from '@atoll/contracts/gpuaas';
import { defineService } from '@atoll/service';
import { isConsoleHost, mustBeOtherHost } from './clusters/console-host.js';
import { nodesInMaintenance } from './baremetal/nodes/baremetal-figures.js';
import { gpuaasSchema } from './database/schema.js';
import { GpuaasModule } from './gpuaas.module.js';
import { GpuaasSettings } from './gpuaas-settings.js';
import { passwordPurpose, proofKeyPurpose } from './model/baremetal-instance.entity.js';
import { nodeCredentialPurpose, reinstallTokenPurpose } from './model/baremetal-node.entity.js';

export const service = defineService({
  name: 'gpuaas',
  settings: GpuaasSettings,
  checks: ({ cluster, sockets, dockerPublicHost, publicUrl }) => [
    () => {
      if (cluster !== 'docker' || sockets.length > 0) return;
      throw new Error('ATOLL_CLUSTER=docker needs ATOLL_DOCKER_SOCKETS, the path of the engine’s socket.');
    },
    () => {
      if (cluster !== 'docker' || !isConsoleHost(dockerPublicHost, publicUrl)) return;
      throw new Error(`ATOLL_DOCKER_PUBLIC_HOST ${mustBeOtherHost}.`);
    },
  ],
  database: { ...gpuaasSchema, poolSize: 16, backgroundPoolSize: 4 },
  module: GpuaasModule,
  figures: [nodesInMaintenance],
  sealed: [
    { table: 'cluster', column: 'sealed_tls', purposeBy: ['gpuaas_id'], purposeOf: clusterPurpose },
    { table: 'baremetal_node', column: 'credential', purposeBy: ['node_id'], purposeOf: nodeCredentialPurpose },
    { table: 'baremetal_node', column: 'reinstall_token', purposeBy: ['node_id'], purposeOf: reinstallTokenPurpose },
    { table: 'baremetal_instance', column: 'password', purposeBy: ['instance_id'], purposeOf: passwordPurpose },
    { table: 'baremetal_instance', column: 'proof_key', purposeBy: ['instance_id'], purposeOf: proofKeyPurpose },
  ],
});
