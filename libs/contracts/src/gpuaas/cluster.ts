import { IntersectionType } from '@nestjs/swagger';
import { contract, event, operation } from '../contract.js';
import { Flag, Instant, ListOf, Nested, NumberedId, OneOf, Text, WholeNumber } from '../fields.js';

const clusterDrivers = ['simulated', 'docker', 'kubernetes'] as const;
export type ClusterDriverName = (typeof clusterDrivers)[number];
const pem = { max: 32_768, multiline: true, optional: true };
/** A DNS name, or an IPv4 or IPv6 address. */
const hostForm = /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:]{2,39})$/;

export class GpuaasPath {
  @NumberedId({ example: '1' })
  gpuaas_id!: string;
}

export class SetClusterBody {
  @OneOf('ClusterDriver', clusterDrivers, { example: 'docker', description: 'Driver that runs the pods of the GPU service.' })
  driver!: ClusterDriverName;

  @Text({
    max: 253,
    optional: true,
    pattern: hostForm,
    patternHint: 'a host name or an IP address',
    example: 'gpu.example.com',
    description: 'Host under which exposed services are reached, 127.0.0.1 if left out.',
  })
  public_host?: string;

  @Text({
    max: 255,
    optional: true,
    example: '/var/run/docker.sock',
    description: 'Of docker: a socket that `ATOLL_DOCKER_SOCKETS` names.',
  })
  socket?: string;

  @Text({
    max: 300,
    optional: true,
    pattern: /^https:\/\/[^\s/@?#]+\/?$/,
    patternHint: 'an https address such as https://gpu-01.example.com:2376',
    example: 'https://gpu-01.example.com:2376',
    description: 'Of docker, in place of `socket`; with `ca`, `cert` and `key`.',
  })
  url?: string;

  @Text({ ...pem, description: 'Certificate of the authority that the engine is trusted by (PEM).' })
  ca?: string;

  @Text({ ...pem, description: 'Certificate of the client (PEM).' })
  cert?: string;

  @Text({ ...pem, description: 'Private key of the client (PEM). Write-only.' })
  key?: string;

  @Text({
    max: 512,
    optional: true,
    example: 'docker.io/library/nginx:1.29',
    description: 'Image of what stands in front of exposed services.',
  })
  door_image?: string;
}

export class SetCluster extends IntersectionType(GpuaasPath, SetClusterBody) {}

export class ClusterCheckResult {
  @Text({ max: 64, example: 'reachable' })
  name!: string;

  @Flag()
  ok!: boolean;

  @Text({ max: 500 })
  detail!: string;

  @Text({ max: 500, nullable: true })
  how_to_fix!: string | null;
}

/** What the driver can do there. */
export class ClusterCapabilities {
  @Flag({ description: 'Whether TLS can end in front of a pod.' })
  tls!: boolean;

  @Flag()
  udp!: boolean;

  @Flag()
  volumes!: boolean;

  @Flag()
  vms!: boolean;

  @OneOf('ClusterShell', ['exec', 'sshd', 'none'], { description: 'Way in which a shell in a pod is opened.' })
  shell!: 'exec' | 'sshd' | 'none';
}

export class Cluster {
  @NumberedId({ example: '1' })
  gpuaas_id!: string;

  @OneOf('ClusterDriver', clusterDrivers, { example: 'docker' })
  driver!: ClusterDriverName;

  @Text({ max: 253, example: 'gpu.example.com' })
  public_host!: string;

  @Text({ max: 255, nullable: true })
  socket!: string | null;

  @Text({ max: 300, nullable: true })
  url!: string | null;

  @Text({ max: 512, nullable: true })
  door_image!: string | null;

  @OneOf('ClusterStatus', ['ok', 'degraded', 'unreachable'], { example: 'ok' })
  status!: 'ok' | 'degraded' | 'unreachable';

  @Instant({ nullable: true, description: 'Since when the status holds; null before the first check.' })
  since!: string | null;

  @ListOf(() => ClusterCheckResult, { max: 100 })
  checks!: ClusterCheckResult[];

  @Nested(() => ClusterCapabilities)
  capabilities!: ClusterCapabilities;
}

export const clusters = contract('gpuaas.clusters', {
  set: operation(SetCluster, Cluster),
  get: operation(GpuaasPath, Cluster),
  check: operation(GpuaasPath, Cluster),
});

export class ClusterChanged extends GpuaasPath {
  @OneOf('ClusterDriver', clusterDrivers)
  driver!: ClusterDriverName;

  @Text({ max: 253 })
  public_host!: string;

  @Text({ max: 262_144, nullable: true, description: 'Sealed JSON of what the driver needs, for `gpuaas.cluster:<gpuaas_id>`.' })
  sealed_settings!: string | null;

  @WholeNumber({
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    description: 'Counts the changes of this cluster: the greatest is the present one.',
  })
  revision!: number;
}
/** What runs the pods of a GPU service was set. */
export const clusterChanged = event('gpuaas.cluster_changed', ClusterChanged);
