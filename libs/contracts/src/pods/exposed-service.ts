import { IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { ListOrPageOf, PageFromOneOrAll } from '../page.js';
import { Flag, Instant, Nested, OneOf, Text, WholeNumber } from '../fields.js';
import { NumberedId } from '../id-fields.js';
import { dnsLabel, dnsLabelHint, PortNumber } from './pod-fields.js';
import { PodPath, podNameField } from './pod.js';

const serviceProtocols = ['HTTP', 'HTTPS', 'TCP', 'UDP'] as const;
export type ServiceProtocol = (typeof serviceProtocols)[number];

const serviceName = { max: 63, pattern: dnsLabel, patternHint: dnsLabelHint, example: 'jupyter' };
const externalPort = {
  example: 30_100,
  description: 'Port on the public host, in the range of the platform (30086 to 32767 by default).',
};

export class ExposeService {
  @Text(podNameField)
  pod_name!: string;

  @Text({ ...serviceName, description: 'Unique in its pod.' })
  service_name!: string;

  @PortNumber({ example: 8888, description: 'Port on which the pod listens, 1 to 65535.' })
  port!: number;

  @OneOf('ServiceProtocol', serviceProtocols, {
    example: 'HTTP',
    description: 'Protocol that the pod speaks on this port.',
  })
  protocol!: ServiceProtocol;

  @PortNumber({ ...externalPort, optional: true })
  external_port?: number;

  @Flag({ optional: true, description: 'Whether TLS is terminated in front of the pod; not with UDP or HTTPS.' })
  ssl_enabled?: boolean;
}

export class ExposedServicePath {
  @NumberedId({ example: '3', description: 'Identifier of the exposed service (`service_id`).' })
  id!: string;
}

/** In the body or in the query of one request. */
export class ExposedServiceQuery {
  @NumberedId({ optional: true, example: '3' })
  service_id?: string;

  @Text({ ...podNameField, optional: true })
  pod_name?: string;
}

export class FindExposedService {
  @NumberedId({ example: '3' })
  service_id!: string;

  @Text({ ...podNameField, optional: true })
  pod_name?: string;
}

export class UpdateExposedService extends FindExposedService {
  @Text({ ...serviceName, optional: true })
  service_name?: string;

  @PortNumber({ example: 8888, optional: true })
  port?: number;

  @OneOf('ServiceProtocol', serviceProtocols, { optional: true, example: 'HTTP' })
  protocol?: ServiceProtocol;

  @PortNumber({ ...externalPort, optional: true })
  external_port?: number;

  @Flag({ optional: true })
  ssl_enabled?: boolean;
}

const exposedServiceStatuses = ['pending', 'provisioning', 'active', 'updating', 'deleting', 'failed'] as const;
export type ExposedServiceStatus = (typeof exposedServiceStatuses)[number];

export class ExposedServiceError {
  @Text({ max: 64, example: 'port_in_use' })
  code!: string;

  @Text({ max: 500 })
  message!: string;
}

export class ExposedService {
  @NumberedId({ example: '3' })
  service_id!: string;

  @Text(podNameField)
  pod_name!: string;

  @Text(serviceName)
  service_name!: string;

  @WholeNumber({ min: 1, max: 65_535, example: 8888 })
  port!: number;

  @OneOf('ServiceProtocol', serviceProtocols, { example: 'HTTP' })
  protocol!: ServiceProtocol;

  @WholeNumber({ min: 1, max: 65_535, example: 30_100 })
  external_port!: number;

  @Flag()
  ssl_enabled!: boolean;

  @Text({ max: 253, example: 'gpu.example.com' })
  host!: string;

  @Text({ max: 300, example: 'http://gpu.example.com:30100' })
  url!: string;

  @OneOf('ExposedServiceStatus', exposedServiceStatuses, { example: 'active' })
  status!: ExposedServiceStatus;

  @Nested(() => ExposedServiceError, {
    optional: true,
    description: 'Reason of a failure, or of an update that was reverted.',
  })
  error?: ExposedServiceError;

  @Instant()
  created_at!: string;

  @Instant()
  updated_at!: string;
}

export class ListExposedServices extends IntersectionType(PodPath, PageFromOneOrAll) {}

export class ExposedServiceList extends ListOrPageOf(() => ExposedService, { max: 10_000 }) {}

export const exposedServices = contract('pods.exposed_services', {
  expose: operation(ExposeService, ExposedService),
  list: operation(ListExposedServices, ExposedServiceList),
  find: operation(FindExposedService, ExposedService),
  update: operation(UpdateExposedService, ExposedService),
  delete: operation(ExposedServicePath, ExposedService),
});
