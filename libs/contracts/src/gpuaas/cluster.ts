import { IntersectionType } from '@nestjs/swagger';
import { contract, event, operation } from '../contract.js';
import { hostName } from '../host-name.js';
import { Flag, Instant, ListOf, Nested, OneOf, Revision, Text, WholeNumber } from '../fields.js';
import { NumberedId } from '../id-fields.js';

const clusterDrivers = ['simulated', 'docker', 'kubernetes'] as const;
export type ClusterDriverName = (typeof clusterDrivers)[number];
const pem = { max: 32_768, multiline: true, optional: true };

export class GpuaasPath {
  @NumberedId({ example: '1' })
  gpuaas_id!: string;
}

export class SetClusterBody {
  @OneOf('ClusterDriver', clusterDrivers, {
    example: 'docker',
    description: 'Driver that runs the pods of the GPU service.',
  })
  driver!: ClusterDriverName;

  @Text({
    ...hostName,
    optional: true,
    example: 'gpu.example.com',
    description:
      'Host under which services that are exposed from now on are reached, 127.0.0.1 if left out. With docker not the host of the console.',
  })
  public_host?: string;

  @Text({
    max: 255,
    optional: true,
    example: '/var/run/docker.sock',
    description: 'For docker: path of a socket that `ATOLL_DOCKER_SOCKETS` names.',
  })
  socket?: string;

  @Text({
    max: 300,
    optional: true,
    pattern: /^https:\/\/[^\s/@?#]+\/?$/,
    patternHint: 'an https address such as https://gpu-01.example.com:2376',
    example: 'https://gpu-01.example.com:2376',
    description: 'For docker: address of the engine, in place of `socket`; with `ca`, `cert` and `key`.',
  })
  url?: string;

  @Text({ ...pem, description: 'Certificate of the authority that signed the certificate of the engine (PEM).' })
  ca?: string;

  @Text({ ...pem, description: 'Certificate of the client (PEM).' })
  cert?: string;

  @Text({ ...pem, description: 'Private key of the client (PEM). Write-only.' })
  key?: string;

  @Text({
    max: 512,
    optional: true,
    example: 'docker.io/library/nginx:1.29',
    description: 'Image of the proxies in front of exposed services; `ATOLL_DOOR_IMAGE` if left out.',
  })
  door_image?: string;
}

export class SetCluster extends IntersectionType(GpuaasPath, SetClusterBody) {}

export class ClusterCheckResult {
  @Text({ max: 64, example: 'reachable', description: 'Name of the check.' })
  name!: string;

  @Flag({ description: 'Whether nothing is wrong.' })
  ok!: boolean;

  @Text({ max: 500, description: 'Sentence that says what was found.' })
  detail!: string;

  @Text({
    max: 500,
    nullable: true,
    description: 'Sentence that says what an operator can do; null where nothing is wrong.',
  })
  how_to_fix!: string | null;
}

/** What the driver can do there. */
export class ClusterCapabilities {
  @Flag({ description: 'Whether TLS can be terminated in front of a pod.' })
  tls!: boolean;

  @Flag({ description: 'Whether UDP can be exposed.' })
  udp!: boolean;

  @Flag({ description: 'Whether there are shared volumes.' })
  volumes!: boolean;

  @Flag({ description: 'Whether there are virtual machines.' })
  vms!: boolean;

  @OneOf('ClusterShell', ['exec', 'sshd', 'none'], { description: 'Way in which a shell in a pod is opened.' })
  shell!: 'exec' | 'sshd' | 'none';
}

export class Cluster {
  @NumberedId({ example: '1' })
  gpuaas_id!: string;

  @OneOf('ClusterDriver', clusterDrivers, {
    example: 'docker',
    description: 'Driver that runs the pods of the GPU service.',
  })
  driver!: ClusterDriverName;

  @Text({ max: 253, example: 'gpu.example.com', description: 'Host under which exposed services are reached.' })
  public_host!: string;

  @Text({
    max: 255,
    nullable: true,
    description: 'Path of the socket of the engine; null where it is reached by `url`, or simulated.',
  })
  socket!: string | null;

  @Text({
    max: 300,
    nullable: true,
    description: 'Address of the engine; null where it is reached by `socket`, or simulated.',
  })
  url!: string | null;

  @Text({
    max: 512,
    nullable: true,
    description: 'Image of the proxies in front of exposed services; null if the cluster is simulated.',
  })
  door_image!: string | null;

  @OneOf('ClusterStatus', ['ok', 'degraded', 'unreachable'], {
    example: 'ok',
    description: 'Result of the last check. Nothing new starts while it is `unreachable`.',
  })
  status!: 'ok' | 'degraded' | 'unreachable';

  @Instant({ nullable: true, description: 'Instant since which the status has applied; null before the first check.' })
  since!: string | null;

  @ListOf(() => ClusterCheckResult, { max: 100, description: 'Results of the last check; empty before the first one.' })
  checks!: ClusterCheckResult[];

  @Nested(() => ClusterCapabilities, { description: 'Capabilities of the driver.' })
  capabilities!: ClusterCapabilities;
}

export class ClusterChanged extends GpuaasPath {
  @OneOf('ClusterDriver', clusterDrivers)
  driver!: ClusterDriverName;

  @Text({ max: 253 })
  public_host!: string;

  @Text({ max: 255, nullable: true })
  socket!: string | null;

  @Text({ max: 300, nullable: true })
  url!: string | null;

  @Text({ max: 512, nullable: true })
  door_image!: string | null;

  @Text({ max: 262_144, nullable: true, description: 'Sealed JSON of `ca`, `cert` and `key`, for `clusterPurpose`.' })
  sealed_tls!: string | null;

  @Flag({ description: 'Whether the last check found it unreachable; nothing new can start there.' })
  is_unreachable!: boolean;

  @WholeNumber({ min: 1, max: Number.MAX_SAFE_INTEGER, description: 'Counts how often the cluster was set.' })
  setting!: number;

  @Revision()
  revision!: number;
}

/** For libs/seal: where the certificates and the key of a cluster belong. */
export function clusterPurpose(gpuaasId: string): string {
  return `gpuaas.cluster:${gpuaasId}`;
}

export const clusters = contract('gpuaas.clusters', {
  set: operation(SetCluster, Cluster),
  get: operation(GpuaasPath, Cluster),
  check: operation(GpuaasPath, Cluster),
  /** For other services: the cluster as they are told of its changes. */
  lookUp: operation(GpuaasPath, ClusterChanged),
});

/** What runs the pods of a GPU service was set, or its status has changed. */
export const clusterChanged = event('gpuaas.cluster_changed', ClusterChanged);
