import { runService } from '@atoll/service';
import { GpuaasEnv } from './env.js';
import { GpuaasModule } from './gpuaas.module.js';

await runService({
  name: 'gpuaas',
  env: GpuaasEnv,
  module: ({ DATABASE_URL, ATOLL_PROMETHEUS_URL }, { rpc, courier }) =>
    GpuaasModule.register({
      databaseUrl: DATABASE_URL,
      rpc,
      courier,
      ...(ATOLL_PROMETHEUS_URL !== undefined && { prometheusUrl: ATOLL_PROMETHEUS_URL }),
    }),
});
