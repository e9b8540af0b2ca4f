import { ApiPropertyOptional, IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Instant, OneOf, Text, WholeNumber } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { IncludeEnded, PageFromOne, PageOf } from '../page.js';

export class StartWorkload {
  @NumberedId({ example: '42' })
  subscription_id!: string;

  @Text({ max: 100, example: 'fine-tune' })
  name!: string;

  @ApiPropertyOptional({ default: 1 })
  @WholeNumber({
    min: 1,
    max: 10_000,
    optional: true,
    example: 1,
    description: 'Number of vGPUs of the subscription to use, 1 to 10000; they may lie on several GPUs.',
  })
  vgpus?: number;
}

export class WorkloadPath {
  @NumberedId({ example: '7' })
  workload_id!: string;
}

class OfTeam {
  @Uuid({ example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10' })
  team_id!: string;

  @NumberedId({ optional: true, example: '42' })
  subscription_id?: string;
}

export class ListWorkloads extends IntersectionType(OfTeam, PageFromOne, IncludeEnded) {}

const workloadStatuses = ['pending', 'running', 'stopping', 'stopped', 'failed'] as const;
export type WorkloadStatus = (typeof workloadStatuses)[number];

export class Workload {
  @NumberedId({ example: '7' })
  workload_id!: string;

  @NumberedId({ example: '42' })
  subscription_id!: string;

  @Uuid()
  team_id!: string;

  @Text({ max: 100, example: 'fine-tune' })
  name!: string;

  @WholeNumber({ min: 1, max: 10_000, example: 1 })
  vgpus!: number;

  @OneOf('WorkloadStatus', workloadStatuses, { example: 'running' })
  status!: WorkloadStatus;

  @Text({ max: 500, nullable: true, description: 'Reason of a failure or of a wait; null otherwise.' })
  reason!: string | null;

  @Instant()
  created_at!: string;
}

export class WorkloadPage extends PageOf(() => Workload) {}

export const workloads = contract('gpuaas.workloads', {
  start: operation(StartWorkload, Workload),
  list: operation(ListWorkloads, WorkloadPage),
  stop: operation(WorkloadPath, Workload),
});
