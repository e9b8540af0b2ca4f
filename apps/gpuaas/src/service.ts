import { defineService } from '@atoll/service';
import { gpuaasSchema } from './database/schema.js';
import { GpuaasModule } from './gpuaas.module.js';
import { GpuaasSettings } from './gpuaas-settings.js';

export const service = defineService({
  name: 'gpuaas',
  settings: GpuaasSettings,
  database: { ...gpuaasSchema, poolSize: 16, backgroundPoolSize: 4 },
  module: GpuaasModule,
});
