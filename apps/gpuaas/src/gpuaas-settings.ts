import { Variable } from '@atoll/service';
import type { WorkerOptions } from '@atoll/state-machine';
import { Type } from 'class-transformer';
import { IsInt, IsOptional, IsUrl, Max, Min } from 'class-validator';

/** What a deployment decides about the gpuaas service. */
export class GpuaasSettings {
  /** Where metrics are read, `http://user:password@host:9090`; simulated without. */
  @Variable('ATOLL_PROMETHEUS_URL')
  @IsOptional()
  @IsUrl({ require_tld: false, protocols: ['http', 'https'] }, { message: 'ATOLL_PROMETHEUS_URL must be an http or https URL' })
  prometheusUrl: string | undefined = undefined;

  /** Steps of one kind (of nodes, GPUs, subscriptions or workloads) that one process has under way at once. */
  @Variable('ATOLL_STEPS')
  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(10_000)
  steps: number = 500;

  /** Of those, steps that talk to one node. Each replica counts for itself. */
  @Variable('ATOLL_STEPS_PER_NODE')
  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(100)
  stepsPerNode: number = 4;

  /** How long a GPU that could not return to Spatial is left alone. */
  returnRetryMs: number = 30_000;

  /** Before a node whose initialisation failed is tried again; doubled with each further failure, up to ten minutes. */
  initRetryMs: number = 30_000;

  /** How long a simulated device takes to switch: long enough to be seen. */
  simulatedSwitchMs: number = 150;

  /** How machines are worked. */
  workers: Partial<WorkerOptions> & { isIdle?: boolean } = {};
}
