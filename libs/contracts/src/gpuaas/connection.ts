import { IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Flag, Instant, ListOf, Nested, OneOf, Text, WholeNumber } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { ListOrPageOf, PageFromOneOrAll } from '../page.js';
import { TeamPath } from '../team-path.js';

export class ConnectionSsh {
  @Text({ max: 253, example: 'gpu-01.example.com' })
  host!: string;

  @WholeNumber({ min: 1, max: 65_535, example: 30_122 })
  port!: number;

  @Text({ max: 64, example: 'atoll' })
  username!: string;

  @Text({ max: 500, example: 'ssh -p 30122 atoll@gpu-01.example.com' })
  command!: string;
}

export class ConnectionService {
  @NumberedId({ example: '3' })
  service_id!: string;

  @Text({ max: 63, example: 'jupyter' })
  service_name!: string;

  @Text({ max: 500, nullable: true, example: 'http://gpu-01.example.com:30111' })
  url!: string | null;
}

export class ConnectionPod {
  @Text({ max: 63, example: 'notebook-abcde' })
  pod_name!: string;

  @Text({ max: 32, example: 'running' })
  status!: string;

  @Nested(() => ConnectionSsh, { nullable: true })
  ssh!: ConnectionSsh | null;

  @ListOf(() => ConnectionService, { max: 1000 })
  services!: ConnectionService[];
}

/** How what runs on a subscription is reached. */
export class Connection {
  @NumberedId({ example: '42' })
  subscription_id!: string;

  @Text({ max: 100, example: 'a100-mig' })
  pool_name!: string;

  @NumberedId({ example: '1' })
  gpuaas_id!: string;

  @NumberedId({ example: '1' })
  region_id!: string;

  @ListOf(() => ConnectionPod, { max: 10_000 })
  pods!: ConnectionPod[];

  @Instant({ nullable: true, description: 'Instant of the refresh that read these values; null before the first.' })
  refreshed_at!: string | null;

  @Flag({ description: 'Whether the last refresh failed, and these values are older.' })
  stale!: boolean;
}

export class ConnectionList extends ListOrPageOf(() => Connection, { max: 100_000 }) {}

class ConnectionFilter extends TeamPath {
  @NumberedId({ optional: true, example: '1' })
  gpuaas_id?: string;
}

class ConnectionSearch {
  @NumberedId({ optional: true, example: '42', description: 'Id of the only subscription to return; all if left out.' })
  subscription_id?: string;

  @Text({
    min: 0,
    max: 200,
    optional: true,
    example: 'jupyter',
    description: 'Part of the name of a pool, a pod or a service; `%` and `_` stand for themselves.',
  })
  search?: string;
}

export class ReadConnections extends IntersectionType(ConnectionFilter, ConnectionSearch, PageFromOneOrAll) {}

export class RefreshConnections extends ConnectionFilter {}

export class RefreshBegun {
  @OneOf('RefreshStatus', ['refreshing'], { example: 'refreshing' })
  status!: 'refreshing';

  @Instant({ description: 'Instant at which the refresh began; requests at the same time share one.' })
  started_at!: string;
}

/** What may attach to the GPU service of its team. */
export class CompatibleInstance {
  @Uuid()
  id!: string;

  @Text({ max: 100 })
  name!: string;

  @OneOf('CompatibleInstanceKind', ['vm', 'baremetal'])
  kind!: 'vm' | 'baremetal';

  @Text({ max: 32 })
  status!: string;
}

export class ListCompatibleInstances extends IntersectionType(TeamPath, PageFromOneOrAll) {}

export class CompatibleInstances extends ListOrPageOf(() => CompatibleInstance, { max: 100_000 }) {}

export const connections = contract('gpuaas.connections', {
  read: operation(ReadConnections, ConnectionList),
  refresh: operation(RefreshConnections, RefreshBegun),
  compatibleInstances: operation(ListCompatibleInstances, CompatibleInstances),
});
