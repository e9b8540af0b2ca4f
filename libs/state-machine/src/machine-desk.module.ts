import { requirePlatformAdmin, type CallContext, type Nothing } from '@atoll/contracts';
import {
  machines,
  type ListProcesses,
  type MachineService,
  type MachineStatesOfService,
  type ProcessPage,
} from '@atoll/contracts/operator';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller, Module, type DynamicModule, type Type } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { MachineDesk } from './machine-desk.js';

/**
 * The operations by which the operator sees what waits or has failed in the machines of a service. Needs
 * `MachineWorkers` among its providers.
 */
@Module({})
export class MachineDeskModule {
  static forRoot({ service }: { service: MachineService }): DynamicModule {
    return {
      module: MachineDeskModule,
      imports: [DiscoveryModule],
      controllers: [machinesController(service)],
      providers: [MachineDesk],
    };
  }
}

/** Serves the operations. */
export function machinesController(service: MachineService): Type {
  const operations = machines(service);

  @Controller()
  class MachinesController implements Handlers<typeof operations> {
    constructor(private readonly desk: MachineDesk) {}

    @Handle(operations.states)
    async states(_input: Nothing, { caller }: CallContext): Promise<MachineStatesOfService> {
      requirePlatformAdmin(caller);
      return this.desk.states(service);
    }

    @Handle(operations.list)
    async list(asked: ListProcesses, { caller }: CallContext): Promise<ProcessPage> {
      requirePlatformAdmin(caller);
      return this.desk.list(asked);
    }
  }
  return MachinesController;
}
