import { platformServices, type PlatformService } from '@atoll/service-names';
import { ListOf, OneOf, Text } from '../fields.js';

/** Those with state machines. */
export const machineServices = ['gpuaas', 'pods'] as const satisfies readonly PlatformService[];
export type MachineService = (typeof machineServices)[number];

const answerStates = ['ok', 'unavailable'] as const;

/** Whether a service has answered its part of a composed listing. */
export class ServiceAnswer {
  @OneOf('PlatformService', platformServices, { example: 'gpuaas', description: 'Name of the service.' })
  service!: PlatformService;

  @OneOf('ServiceAnswerStatus', answerStates, {
    example: 'ok',
    description: 'Whether this response includes its part.',
  })
  status!: (typeof answerStates)[number];

  @Text({ max: 500, nullable: true, example: null, description: 'Reason why its part is missing.' })
  detail!: string | null;
}

/** An answer that is composed of those of several services. */
export class ComposedOfServices {
  @ListOf(() => ServiceAnswer, { max: platformServices.length, description: 'The services that were asked.' })
  services!: ServiceAnswer[];
}
