import type { ServiceDefinition } from '@atoll/service';
import { platformServices, type PlatformService } from '@atoll/service-names';
import { service as billing } from '../../billing/src/service.js';
import { service as gpuaas } from '../../gpuaas/src/service.js';
import { service as pods } from '../../pods/src/service.js';
import { service as teams } from '../../teams/src/service.js';

const definitions: Record<PlatformService, ServiceDefinition> = { billing, gpuaas, pods, teams };

/** The services of the platform. */
export const services: readonly ServiceDefinition[] = platformServices.map((name) => definitions[name]);
