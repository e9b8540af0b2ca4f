import { applyDecorators } from '@nestjs/common';
import { Transform } from 'class-transformer';
import { NumberedId, NumberedIds, OneOf, TeamPath, Text, Uuid, WholeNumber } from '@atoll/contracts';
import { PodPath, podActions, type ServiceProtocol } from '@atoll/contracts/pods';
import { ShownInstant, ShownInteger, ShownText, ShownUuid } from '../http/old-answers.js';

const serviceTypes = ['http', 'https', 'nodeport', 'loadbalancer'] as const;
type ServiceType = (typeof serviceTypes)[number];

const lowerCase = ({ value }: { value: unknown }): unknown => (typeof value === 'string' ? value.toLowerCase() : value);
const upperCase = ({ value }: { value: unknown }): unknown => (typeof value === 'string' ? value.toUpperCase() : value);

const ServiceTypeGiven = (): PropertyDecorator =>
  applyDecorators(
    Transform(lowerCase),
    OneOf('OldServiceType', serviceTypes, {
      optional: true,
      spelt: ['http', 'https', 'NodePort', 'loadbalancer'],
      description: 'http, https, NodePort or loadbalancer, in any case.',
    }),
  );

const protocols = ['TCP', 'UDP', 'HTTP', 'HTTPS'] as const;
type Protocol = (typeof protocols)[number];

const ProtocolGiven = (description: string): PropertyDecorator =>
  applyDecorators(
    Transform(upperCase),
    OneOf('OldProtocol', protocols, { optional: true, spelt: protocols, description }),
  );

const port = { min: 1, max: 65_535, description: 'Port on which the pod listens.' };
const label = {
  max: 63,
  pattern: /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
  patternHint: 'a DNS label: lower-case letters, digits and hyphens',
};

export class OldPodAction extends PodPath {
  @NumberedId({ optional: true, description: 'Id of the subscription that the pod must be of.' })
  pool_subscription_id?: string;

  @OneOf('OldAction', podActions)
  pod_action!: (typeof podActions)[number];
}

export class VolumeAction extends PodPath {
  @OneOf('VolumeOperation', ['attach_volume', 'detach_volume'])
  action!: 'attach_volume' | 'detach_volume';

  @NumberedIds({ max: 20, description: 'Ids of shared volumes.' })
  volumes!: string[];
}

export class Reimage extends TeamPath {
  @NumberedId({ description: 'Id of the subscription.' })
  subscription_id!: string;

  @Uuid({ description: 'Id of an image of the policy of the team.' })
  image_uuid!: string;
}

export class OldExpose extends PodPath {
  @NumberedId({ optional: true, description: 'Id of the subscription that the pod must be of.' })
  pool_subscription_id?: string;

  @WholeNumber(port)
  port!: number;

  @Text(label)
  service_name!: string;

  @ProtocolGiven('TCP, UDP, HTTP or HTTPS, in any case. Where a type is sent, that decides over HTTP and HTTPS.')
  protocol?: Protocol;

  @ServiceTypeGiven()
  service_type?: ServiceType;
}

export class OldExposeChange {
  @NumberedId({ description: 'Id of the exposed service.' })
  id!: string;

  @WholeNumber({ ...port, optional: true })
  port?: number;

  @Text({ ...label, optional: true })
  service_name?: string;

  @ProtocolGiven('As where a service is exposed. Without a type it changes a service of the type NodePort alone.')
  protocol?: Protocol;

  @ServiceTypeGiven()
  service_type?: ServiceType;
}

export class ExposeStatusQuery {
  @Text({ max: 63, description: 'Name of the service.' })
  service_name!: string;

  @NumberedId({ description: 'Id of the subscription.' })
  pool_subscription_id!: string;
}

export interface SpokenTerms {
  protocol: ServiceProtocol;
  ssl_enabled: boolean;
}

/** http means HTTP, https means HTTP with TLS in front of it; otherwise the transport decides. */
export function termsOf(type: ServiceType | undefined, protocol: Protocol = 'TCP'): SpokenTerms {
  const isTransport = protocol === 'TCP' || protocol === 'UDP';
  const spoken = type ?? (isTransport ? undefined : (protocol.toLowerCase() as 'http' | 'https'));
  if (spoken === 'http' || spoken === 'https') return { protocol: 'HTTP', ssl_enabled: spoken === 'https' };
  return { protocol: isTransport ? protocol : 'TCP', ssl_enabled: false };
}

export class OldExposed {
  @ShownInteger('Id of the exposed service.')
  id!: number;

  @ShownText('Name of the pod.')
  pod_name!: string;

  @ShownUuid('Id of the team; null where the pod is gone.', { nullable: true })
  team_id!: string | null;

  @ShownText('Name of the service.')
  service_name!: string;

  @ShownText('Public host.')
  ip!: string;

  @ShownInteger('Port on the public host.')
  node_port!: number;

  @ShownInteger('Port on which the pod listens.')
  pod_port!: number;

  @ShownText('Protocol that the pod speaks.')
  protocol!: string;

  @ShownText('State of the service.')
  status!: string;

  @ShownText('Type of the service: http, https or NodePort.')
  service_type!: string;

  @ShownInstant('Instant of creation.')
  created_at!: string;
}
