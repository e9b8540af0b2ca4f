import { defineService } from '@atoll/service';
import { podsSchema } from './database/schema.js';
import { PodsModule } from './pods.module.js';
import { PodsSettings } from './pods-settings.js';

export const service = defineService({
  name: 'pods',
  settings: PodsSettings,
  database: { ...podsSchema, poolSize: 16, backgroundPoolSize: 4 },
  module: PodsModule,
});
