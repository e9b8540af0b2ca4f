import { ApiPropertyOptional } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Instant, ListOf, OneOf, Text, WholeNumber } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';

const logOrders = ['desc', 'asc'] as const;
export type LogOrderName = (typeof logOrders)[number];

export class ReadPodLogs {
  @Uuid({ optional: true, description: 'Id of the team whose pods are read; all teams of the caller if left out.' })
  team_id?: string;

  @NumberedId({ optional: true, example: '1' })
  gpuaas_id?: string;

  @Text({ max: 63, optional: true, example: 'trainer-kdwqz' })
  pod_name?: string;

  @Instant({ optional: true, example: '2026-10-01T00:00:00.000Z', description: 'Start of the range, included.' })
  since?: string;

  @Instant({ optional: true, example: '2026-10-01T01:00:00.000Z', description: 'End of the range, not included.' })
  until?: string;

  @Text({
    min: 0,
    max: 200,
    optional: true,
    example: 'loss=nan',
    description:
      'Text that a line contains, letter for letter; no pattern. All lines if empty. A page of a search may hold fewer lines than `limit`, also none, and have a `next_cursor`.',
  })
  search?: string;

  @ApiPropertyOptional({ default: 100 })
  @WholeNumber({
    min: 1,
    max: 1000,
    optional: true,
    example: 100,
    description: 'Lines on a page at most, 1 to 1000; a page ends at 2 MiB.',
  })
  limit?: number;

  @ApiPropertyOptional({ default: 'desc' })
  @OneOf('LogOrder', logOrders, {
    optional: true,
    example: 'desc',
    description: 'Newest lines first (`desc`), or oldest first (`asc`).',
  })
  order?: LogOrderName;

  @Text({ max: 100, optional: true, description: 'The `next_cursor` of a page with the same filters and order.' })
  cursor?: string;
}

const logStreamNames = ['stdout', 'stderr', 'platform'] as const;
export type LogStreamName = (typeof logStreamNames)[number];

export class PodLogLine {
  @Instant({ example: '2026-10-01T00:00:00.000Z' })
  timestamp!: string;

  @Text({ max: 63, example: 'trainer-kdwqz' })
  pod_name!: string;

  @Text({ max: 63, example: 'main', description: 'Name of the container in the pod.' })
  container!: string;

  @OneOf('LogStream', logStreamNames, {
    nullable: true,
    example: 'stdout',
    description:
      'Stream that the line was written to; `platform`: the platform wrote it about the pod; null where the cluster cannot tell.',
  })
  stream!: LogStreamName | null;

  @Text({
    min: 0,
    max: 20_000,
    multiline: true,
    example: 'epoch 3 loss=0.41',
    description: 'The line, without its line break. At most 16 KiB; the rest is cut, and the line says so.',
  })
  message!: string;

  @NumberedId({ example: '1' })
  gpuaas_id!: string;
}

export class PodLogPage {
  @ListOf(() => PodLogLine, { max: 1000 })
  data!: PodLogLine[];

  @Text({
    max: 100,
    nullable: true,
    description:
      'Cursor of the next page; null where there is none. With `asc` the last page has one too: asked again, it gives what was written since. Without `pod_name` it gives lines once all pods are read so far, usually 3 to 4 s after they were written. A pod whose lines cannot be read or stored holds up the others for a minute, or two after a replica of the platform has died; what it wrote is not given by cursors that have passed it.',
  })
  next_cursor!: string | null;
}

export const podLogs = contract('pods.logs', {
  read: operation(ReadPodLogs, PodLogPage),
});
