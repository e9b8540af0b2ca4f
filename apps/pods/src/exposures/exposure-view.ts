import type { ExposedService, ExposedServiceStatus, ServiceProtocol } from '@atoll/contracts/pods';
import type { ExposureEntity } from '../model/exposure.entity.js';
import { shownError } from '../model/failing-row.js';

function statusOf(state: string): ExposedServiceStatus {
  if (state === 'reverting') return 'updating';
  if (state === 'failing') return 'failed';
  return state === 'deleted' ? 'deleting' : (state as ExposedServiceStatus);
}

export function exposureView(exposure: ExposureEntity, podName: string): ExposedService {
  const { protocol, isSsl, publicHost, externalPort, problem } = exposure;
  const error = shownError(exposure) ?? problem;
  return {
    service_id: exposure.serviceId,
    pod_name: podName,
    service_name: exposure.serviceName,
    port: exposure.port,
    protocol,
    external_port: externalPort,
    ssl_enabled: isSsl,
    host: publicHost,
    url: urlOf(protocol, isSsl, publicHost, externalPort),
    status: statusOf(exposure.state),
    ...(error && { error: { code: error.code, message: error.message } }),
    created_at: exposure.createdAt.toISOString(),
    updated_at: new Date(Math.max(exposure.enteredAt.getTime(), exposure.renamedAt?.getTime() ?? 0)).toISOString(),
  };
}

export function urlOf(protocol: ServiceProtocol, isSsl: boolean, host: string, port: number): string {
  const shown = host.includes(':') ? `[${host}]` : host;
  const scheme = { HTTP: isSsl ? 'https' : 'http', HTTPS: 'https', TCP: isSsl ? 'tls' : 'tcp', UDP: 'udp' }[protocol];
  return `${scheme}://${shown}:${port}`;
}
