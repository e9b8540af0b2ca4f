import type { ServiceDefinition } from '@atoll/service';
import { service as billing } from '../../billing/src/service.js';
import { service as gpuaas } from '../../gpuaas/src/service.js';
import { service as pods } from '../../pods/src/service.js';
import { service as teams } from '../../teams/src/service.js';

/** The services of the platform. */
export const services: readonly ServiceDefinition[] = [teams, billing, gpuaas, pods];
