import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { PageFromOne, type CallContext } from '@atoll/contracts';
import {
  CreateFlavour,
  CreateVm,
  Flavour,
  FlavourPage,
  ListVms,
  UpdateVmBody,
  Vm,
  VmPage,
  VmPath,
  vms,
} from '@atoll/contracts/pods';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage, Refuses } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('VMs')
@Controller('vm')
export class VmsController {
  constructor(private readonly rpc: Rpc) {}

  @Post()
  @Answers(
    202,
    Vm,
    'Create a VM',
    'Creates a VM of a flavour in a region and starts it. It is billed while it runs. A team has at most 200. Requires team_owner, team_admin or member.',
  )
  @Refuses('not_supported')
  createVm(@Body() body: CreateVm, @Context() context: CallContext): Promise<Vm> {
    return this.rpc.call(vms.create, body, context);
  }

  @Get()
  @AnswersPage(
    VmPage,
    1,
    'List the VMs of a team',
    'Returns VMs, of one region or of all. Any member of the team may read them.',
  )
  listVms(@Query() query: ListVms, @Context() context: CallContext): Promise<VmPage> {
    return this.rpc.call(vms.list, query, context);
  }

  @Post('flavour')
  @Answers(201, Flavour, 'Create a flavour', 'Creates a size of VMs. Its name is unique. Requires platform_admin.')
  createFlavour(@Body() body: CreateFlavour, @Context() context: CallContext): Promise<Flavour> {
    return this.rpc.call(vms.createFlavour, body, context);
  }

  @Get('flavour')
  @AnswersPage(FlavourPage, 1, 'List flavours', 'Returns the sizes of VMs. Any authenticated caller may read them.')
  listFlavours(@Query() query: PageFromOne, @Context() context: CallContext): Promise<FlavourPage> {
    return this.rpc.call(vms.listFlavours, query, context);
  }

  @Get(':instance_id')
  @Answers(200, Vm, 'Get a VM', 'Returns a VM. Any member of its team may read it.')
  getVm(@Param() path: VmPath, @Context() context: CallContext): Promise<Vm> {
    return this.rpc.call(vms.get, path, context);
  }

  @Put(':instance_id')
  @Answers(
    200,
    Vm,
    'Update a VM',
    'Changes the name of a VM, or whether it restarts. Requires team_owner, team_admin or member.',
  )
  updateVm(@Param() path: VmPath, @Body() body: UpdateVmBody, @Context() context: CallContext): Promise<Vm> {
    return this.rpc.call(vms.update, { ...path, ...body }, context);
  }

  @Post(':instance_id/start')
  @Answers(202, Vm, 'Start a VM', 'Starts a VM that has stopped or failed. Requires team_owner, team_admin or member.')
  startVm(@Param() path: VmPath, @Context() context: CallContext): Promise<Vm> {
    return this.rpc.call(vms.start, path, context);
  }

  @Post(':instance_id/stop')
  @Answers(202, Vm, 'Stop a VM', 'Stops a VM; it does not restart. Requires team_owner, team_admin or member.')
  stopVm(@Param() path: VmPath, @Context() context: CallContext): Promise<Vm> {
    return this.rpc.call(vms.stop, path, context);
  }

  @Post(':instance_id/restart')
  @Answers(
    202,
    Vm,
    'Restart a VM',
    'Stops a VM and starts it again; one that has stopped or failed is started. Requires team_owner, team_admin or member.',
  )
  restartVm(@Param() path: VmPath, @Context() context: CallContext): Promise<Vm> {
    return this.rpc.call(vms.restart, path, context);
  }

  @Delete(':instance_id')
  @Answers(
    202,
    Vm,
    'Delete a VM',
    'Stops a VM and deletes it with its disk. Requires team_owner, team_admin or member.',
  )
  deleteVm(@Param() path: VmPath, @Context() context: CallContext): Promise<Vm> {
    return this.rpc.call(vms.delete, path, context);
  }
}
