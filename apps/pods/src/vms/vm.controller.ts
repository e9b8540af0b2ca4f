import type { CallContext, PageFromOne } from '@atoll/contracts';
import {
  vms,
  type CreateFlavour,
  type CreateVm,
  type Flavour,
  type FlavourPage,
  type ListVms,
  type UpdateVm,
  type Vm,
  type VmPage,
  type VmPath,
} from '@atoll/contracts/pods';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { FlavoursService } from './flavour.service.js';
import { VmsService } from './vm.service.js';

@Controller()
export class VmsController implements Handlers<typeof vms> {
  constructor(
    private readonly vms: VmsService,
    private readonly flavours: FlavoursService,
  ) {}

  @Handle(vms.create)
  create(input: CreateVm, context: CallContext): Promise<Vm> {
    return this.vms.create(input, context);
  }

  @Handle(vms.list)
  list(input: ListVms, context: CallContext): Promise<VmPage> {
    return this.vms.list(input, context);
  }

  @Handle(vms.get)
  get(input: VmPath, context: CallContext): Promise<Vm> {
    return this.vms.get(input, context);
  }

  @Handle(vms.update)
  update(input: UpdateVm, context: CallContext): Promise<Vm> {
    return this.vms.update(input, context);
  }

  @Handle(vms.start)
  start(input: VmPath, context: CallContext): Promise<Vm> {
    return this.vms.start(input, context);
  }

  @Handle(vms.stop)
  stop(input: VmPath, context: CallContext): Promise<Vm> {
    return this.vms.stop(input, context);
  }

  @Handle(vms.restart)
  restart(input: VmPath, context: CallContext): Promise<Vm> {
    return this.vms.restart(input, context);
  }

  @Handle(vms.delete)
  delete(input: VmPath, context: CallContext): Promise<Vm> {
    return this.vms.delete(input, context);
  }

  @Handle(vms.createFlavour)
  createFlavour(input: CreateFlavour, context: CallContext): Promise<Flavour> {
    return this.flavours.create(input, context);
  }

  @Handle(vms.listFlavours)
  listFlavours(input: PageFromOne): Promise<FlavourPage> {
    return this.flavours.list(input);
  }
}
