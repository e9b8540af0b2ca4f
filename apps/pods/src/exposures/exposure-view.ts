import type { ExposedService, ExposedServiceStatus } from '@atoll/contracts/pods';
import type { DoorTerms, ExposureEntity } from '../model/exposure.entity.js';
import { shownError } from '../model/failing-row.js';

function statusOf(state: string): ExposedServiceStatus {
  if (state === 'reverting') return 'updating';
  if (state === 'failing') return 'failed';
  return state === 'deleted' ? 'deleting' : (state as ExposedServiceStatus);
}

export function exposureView(exposure: ExposureEntity, podName: string): ExposedService {
  const error = shownError(exposure) ?? exposure.problem;
  return {
    service_id: exposure.serviceId,
    pod_name: podName,
    service_name: exposure.serviceName,
    port: exposure.port,
    protocol: exposure.protocol,
    external_port: exposure.externalPort,
    ssl_enabled: exposure.isSsl,
    host: exposure.publicHost,
    url: urlOf(exposure),
    status: statusOf(exposure.state),
    ...(error && { error: { code: error.code, message: error.message } }),
    created_at: exposure.createdAt.toISOString(),
    updated_at: new Date(Math.max(exposure.enteredAt.getTime(), exposure.renamedAt?.getTime() ?? 0)).toISOString(),
  };
}

export function urlOf(exposed: Omit<DoorTerms, 'port'> & { readonly publicHost: string }): string {
  const { protocol, isSsl, publicHost, externalPort } = exposed;
  const host = publicHost.includes(':') ? `[${publicHost}]` : publicHost;
  const scheme = { HTTP: isSsl ? 'https' : 'http', HTTPS: 'https', TCP: isSsl ? 'tls' : 'tcp', UDP: 'udp' }[protocol];
  return `${scheme}://${host}:${externalPort}`;
}
