import { defineService } from '@atoll/service';
import { gpuaasSchema } from './database/schema.js';
import { GpuaasModule } from './gpuaas.module.js';
import { GpuaasSettings } from './gpuaas-settings.js';

export const service = defineService({
  name: 'gpuaas',
  settings: GpuaasSettings,
  // Requests and workers.
  database: { ...gpuaasSchema, poolSize: 20 },
  module: GpuaasModule,
});
