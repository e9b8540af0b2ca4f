import { sealedDoors } from '@atoll/cluster';
import { clusterPurpose } from '@atoll/contracts/gpuaas';
import { defineService, requireOwnAddress } from '@atoll/service';
import { certificateFiles, readCertificate } from './certificates/operators-certificate.js';
import { podsSchema } from './database/schema.js';
import { rangeOf } from './doors/ports.js';
import { certificatePurpose } from './model/certificate.entity.js';
import { envPurpose } from './model/pod.entity.js';
import { hostKeyPurpose } from './model/ssh-host-key.entity.js';
import { PodsModule } from './pods.module.js';
import { PodsSettings } from './pods-settings.js';

export const service = defineService({
  name: 'pods',
  settings: PodsSettings,
  checks: ({ exposedPorts, simulatedHost, terminalHost, ...certificate }) => [
    () => rangeOf(exposedPorts),
    async () => {
      const files = certificateFiles(certificate);
      if (files) await readCertificate(files);
    },
    () => requireOwnAddress('ATOLL_SIMULATED_HOST', simulatedHost),
    () => requireOwnAddress('ATOLL_TERMINAL_HOST', terminalHost),
  ],
  // Of several replicas on one host one has the port, and another takes it over.
  listeners: ({ sshPort, sshHost: host }) =>
    sshPort === 'off' ? [] : [{ variable: 'ATOLL_SSH_PORT', port: Number(sshPort), host, waits: true }],
  database: { ...podsSchema, poolSize: 16, backgroundPoolSize: 4 },
  module: PodsModule,
  sealed: [
    { table: 'cluster', column: 'sealed_tls', purposeBy: ['gpuaas_id'], purposeOf: clusterPurpose },
    { table: 'pod', column: 'sealed_env', purposeBy: ['pod_id'], purposeOf: envPurpose },
    { table: 'certificate', column: 'sealed_key', purposeBy: ['public_host'], purposeOf: certificatePurpose },
    { table: 'ssh_host_key', column: 'sealed', purposeBy: ['id'], purposeOf: () => hostKeyPurpose },
    sealedDoors,
  ],
});
