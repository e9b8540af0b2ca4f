import { ServiceEnv } from '@atoll/service';
import { IsOptional, IsUrl } from 'class-validator';

export class GpuaasEnv extends ServiceEnv {
  /** Where metrics are read, `http://user:password@host:9090`; simulated without. */
  @IsOptional()
  @IsUrl({ require_tld: false, protocols: ['http', 'https'] }, { message: 'ATOLL_PROMETHEUS_URL must be an http or https URL' })
  ATOLL_PROMETHEUS_URL: string | undefined = undefined;
}
