import { Variable } from '@atoll/service';
import type { WorkerOptions } from '@atoll/state-machine';
import { IsOptional, IsUrl } from 'class-validator';

/** What a deployment decides about the gpuaas service. */
export class GpuaasSettings {
  /** Where metrics are read, `http://user:password@host:9090`; simulated without. */
  @Variable('ATOLL_PROMETHEUS_URL')
  @IsOptional()
  @IsUrl({ require_tld: false, protocols: ['http', 'https'] }, { message: 'ATOLL_PROMETHEUS_URL must be an http or https URL' })
  prometheusUrl: string | undefined = undefined;

  /** How long a GPU that could not return to Spatial is left alone. */
  returnRetryMs: number = 30_000;

  /** Before a node whose initialisation failed is tried again; doubled with each further failure, up to ten minutes. */
  initRetryMs: number = 30_000;

  /** How long a simulated device takes to switch: long enough to be seen. */
  simulatedSwitchMs: number = 150;

  /** How machines are worked. */
  workers: Partial<WorkerOptions> & { isIdle?: boolean } = {};
}
