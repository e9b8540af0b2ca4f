import { type CallContext, type Caller, type Permission } from '@atoll/contracts';
import type { CreateVm, ListVms, UpdateVm, Vm, VmPage, VmPath } from '@atoll/contracts/pods';
import { newId, Statements, takeTurn, Transactions, unique, Writers } from '@atoll/database';
import { AppError, requireSomeField } from '@atoll/errors';
import { causeOf } from '@atoll/state-machine';
import { TeamDirectory, TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { readTeamPage } from '../model/team-page.js';
import type { EntityManager } from 'typeorm';
import { Clusters } from '../cluster/clusters.js';
import { AllowedImages } from '../images/allowed-images.js';
import { GpuServices } from '../cluster/gpu-services.js';
import { MountableVolumes, requireMountsApart } from '../volumes/mountable-volumes.js';
import { FlavoursService } from './flavour.service.js';
import { requireForCaller } from '../model/live-row.js';
import { atRest, endings } from '../model/run-states.js';
import { VmEntity } from '../model/vm.entity.js';
import { VmSteps } from './vm-steps.js';
import { vmView } from './vm-view.js';

/** Nothing else bounds how many a team may create. */
const mostOfTeam = 200;
const noVms = 'The cluster of this GPU service does not support VMs.';

/** VMs, each for the members of its team alone. */
@Injectable()
export class VmsService {
  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly writers: Writers,
    private readonly gate: TeamGate,
    private readonly teams: TeamDirectory,
    private readonly clusters: Clusters,
    private readonly gpuServices: GpuServices,
    private readonly flavours: FlavoursService,
    private readonly images: AllowedImages,
    private readonly steps: VmSteps,
    private readonly mounts: MountableVolumes,
  ) {}

  async create(asked: CreateVm, context: CallContext): Promise<Vm> {
    const kept = await this.transactions.kept<Vm>(context);
    if (kept) return kept;
    const { team_id: teamId, name, image, flavour, volumes = [], auto_restart: autoRestart = false } = asked;
    const workspaceId = await this.gate.requireGrowth(context.caller, teamId, 'team', asked.workspace_id);
    requireMountsApart(volumes);
    const size = await this.flavours.find(flavour);
    const place = await this.gpuServices.find(asked.region_id, asked.gpuaas_id, context.requestId);
    await this.clusters.requireSupport(place.gpuaas_id, 'vms', noVms);
    const reference = await this.images.require(teamId, image, context.requestId);
    return this.writers.once(turnOf(teamId), context, async (manager) => {
      await this.gate.holdOpen(manager, context.caller, { teamId, workspaceId });
      await requireRoom(manager, teamId);
      await this.mounts.hold(manager, { teamId, gpuaasId: place.gpuaas_id }, volumes);
      const placed = { gpuaasId: place.gpuaas_id, regionId: place.region_id, regionName: place.region_name };
      const wanted = { name, teamId, workspaceId, ...placed, flavour, ...size, image, reference, volumes, autoRestart };
      const values = { instanceId: newId(), ...wanted, run: 1, createdAt: new Date() };
      const vm = await unique(this.steps.insert(manager, values, causeOf(context)), nameTaken(name));
      return vmView(vm);
    });
  }

  async list(asked: ListVms, { caller, requestId }: CallContext): Promise<VmPage> {
    await this.teams.teamFor(caller, asked.team_id, 'readTeam');
    if (asked.region_id !== undefined) await this.gpuServices.requireRegion(asked.region_id, requestId);
    const { rows, pagination } = await readTeamPage(
      this.statements,
      { table: 'vm', key: 'instance_id', column: 'region_id', columns: 'row.*' },
      asked,
      asked.region_id,
    );
    return { data: rows.map((raw) => vmView(this.steps.rowOf(raw))), pagination };
  }

  async get({ instance_id }: VmPath, { caller }: CallContext): Promise<Vm> {
    return vmView(await this.find(instance_id, caller, 'readTeam'));
  }

  /** `auto_restart` holds from now on, also for the run that is under way. */
  async update({ instance_id, name, auto_restart }: UpdateVm, context: CallContext): Promise<Vm> {
    requireSomeField({ name, auto_restart }, 'name', 'auto_restart');
    const found = await this.find(instance_id, context.caller, 'useResources');
    await this.gate.requireGrowth(context.caller, found.teamId, 'VM');
    return this.transactions.run(async (manager) => {
      await this.gate.holdOpen(manager, context.caller, found);
      const vm = await this.steps.lockLive(manager, instance_id);
      if (vm.state === 'deleting') throw new AppError('conflict', 'The VM is being deleted.');
      const changed = {
        ...(name !== undefined && { name }),
        ...(auto_restart !== undefined && { autoRestart: auto_restart }),
      };
      await unique(manager.update(VmEntity, { instanceId: instance_id }, changed), nameTaken(name ?? ''));
      Object.assign(vm, changed);
      if (name !== undefined) await this.steps.tellName(manager, vm);
      if (auto_restart === false) await this.steps.touch(manager, [instance_id], ['restarting']);
      return vmView(vm);
    });
  }

  /** What starts or runs already stays as it is. */
  start(path: VmPath, context: CallContext): Promise<Vm> {
    return this.beginning(path, 'start', context);
  }

  /** What has stopped or failed is started. */
  restart(path: VmPath, context: CallContext): Promise<Vm> {
    return this.beginning(path, 'restart', context);
  }

  stop(path: VmPath, context: CallContext): Promise<Vm> {
    return this.ending(path, 'STOP', context);
  }

  delete(path: VmPath, context: CallContext): Promise<Vm> {
    return this.ending(path, 'DELETE', context);
  }

  private async beginning({ instance_id }: VmPath, action: 'start' | 'restart', context: CallContext): Promise<Vm> {
    const kept = await this.transactions.kept<Vm>(context);
    if (kept) return kept;
    const found = await this.find(instance_id, context.caller, 'useResources');
    await this.gate.requireGrowth(context.caller, found.teamId, 'VM');
    const reference = await this.images.require(found.teamId, found.image, context.requestId);
    return this.transactions.once(context, async (manager) => {
      await this.gate.holdOpen(manager, context.caller, found);
      const vm = await this.steps.lockLive(manager, instance_id);
      if (vm.state === 'deleting') throw new AppError('conflict', 'The VM is being deleted.');
      if (endings.has(vm.state)) throw new AppError('conflict', 'The VM is stopping: start it when it has stopped.');
      const isAtRest = atRest.has(vm.state);
      if (!isAtRest && action === 'start') return vmView(vm);
      await this.mounts.hold(manager, vm, vm.volumes);
      if (!isAtRest) return vmView(await this.steps.restart(manager, vm, causeOf(context)));
      const fresh = { run: vm.run + 1, restarts: 0, failures: 0, endReason: null, nextRunAt: null, reference };
      return vmView((await this.steps.move(manager, vm, 'START', causeOf(context), fresh)) ?? vm);
    });
  }

  private async ending({ instance_id }: VmPath, event: 'STOP' | 'DELETE', context: CallContext): Promise<Vm> {
    const kept = await this.transactions.kept<Vm>(context);
    if (kept) return kept;
    await this.find(instance_id, context.caller, 'useResources');
    return this.transactions.once(context, async (manager) => {
      const vm = await this.steps.lockLive(manager, instance_id);
      const reason = event === 'STOP' ? { endReason: null } : {};
      return vmView((await this.steps.move(manager, vm, event, causeOf(context), reason)) ?? vm);
    });
  }

  private async find(instanceId: string, caller: Caller, permission: Permission): Promise<VmEntity> {
    const query = `SELECT * FROM vm WHERE instance_id = $1 AND state <> 'deleted'`;
    const [raw] = await this.statements.query(query, [instanceId]);
    return requireForCaller(raw && this.steps.rowOf(raw), 'VM', caller, permission);
  }
}

const turnOf = (teamId: string): string => `vm ${teamId}`;

async function requireRoom(manager: EntityManager, teamId: string): Promise<void> {
  await takeTurn(manager, turnOf(teamId));
  const [{ live = 0 } = {}] = await manager.query<{ live: number }[]>(
    `SELECT count(*)::int AS live FROM vm WHERE team_id = $1 AND state <> 'deleted'`,
    [teamId],
  );
  if (live >= mostOfTeam) throw new AppError('conflict', `The team has ${live} VMs, the maximum for a team.`);
}

const nameTaken = (name: string): string => `The team has a VM named ${name}.`;
