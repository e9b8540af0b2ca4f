import { type CallContext, type Caller, type Permission } from '@atoll/contracts';
import {
  type CreateSharedVolume,
  type ListSharedVolumes,
  type ResizeSharedVolume,
  type SharedVolume,
  type SharedVolumePage,
  type SharedVolumePath,
} from '@atoll/contracts/pods';
import { Statements, takeTurn, Transactions, unique, Writers } from '@atoll/database';
import { AppError, invalidField } from '@atoll/errors';
import { causeOf } from '@atoll/state-machine';
import { TeamDirectory, TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { readTeamPage } from '../model/team-page.js';
import type { EntityManager } from 'typeorm';
import { Clusters } from '../cluster/clusters.js';
import { GpuServices } from '../cluster/gpu-services.js';
import { MountableVolumes } from './mountable-volumes.js';
import { requireForCaller } from '../model/live-row.js';
import type { VolumeEntity } from '../model/volume.entity.js';
import { VolumeSteps } from './volume-steps.js';
import { volumeView } from './volume-view.js';

/** Nothing else bounds how many a team may create. */
const mostOfTeam = 1_000;
const noVolumes = 'The cluster of this GPU service has no shared volumes.';

/** Shared volumes, each for the members of its team alone. */
@Injectable()
export class VolumesService {
  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly writers: Writers,
    private readonly gate: TeamGate,
    private readonly teams: TeamDirectory,
    private readonly clusters: Clusters,
    private readonly gpuServices: GpuServices,
    private readonly steps: VolumeSteps,
    private readonly mounts: MountableVolumes,
  ) {}

  async create(asked: CreateSharedVolume, context: CallContext): Promise<SharedVolume> {
    const kept = await this.transactions.kept<SharedVolume>(context);
    if (kept) return kept;
    const { team_id: teamId, name, size_in_gb: sizeGb } = asked;
    const workspaceId = await this.gate.requireGrowth(context.caller, teamId, 'team', asked.workspace_id);
    const { gpuaas_id, region_id, region_name } = await this.gpuServices.find(
      asked.region_id,
      asked.gpuaas_id,
      context.requestId,
    );
    await this.clusters.requireSupport(gpuaas_id, 'volumes', noVolumes);
    const place = { gpuaasId: gpuaas_id, regionId: region_id, regionName: region_name };
    return this.writers.once(turnOf(teamId), context, async (manager) => {
      await this.gate.holdOpen(manager, context.caller, { teamId, workspaceId });
      await requireRoom(manager, teamId, name);
      const values = { teamId, workspaceId, ...place, name, sizeGb, createdAt: new Date() };
      return volumeView(await unique(this.steps.insert(manager, values, causeOf(context)), nameTaken(name)));
    });
  }

  async list(asked: ListSharedVolumes, { caller, requestId }: CallContext): Promise<SharedVolumePage> {
    await this.teams.teamFor(caller, asked.team_id, 'readTeam');
    if (asked.region_id !== undefined) await this.gpuServices.requireRegion(asked.region_id, requestId);
    const { rows, pagination } = await readTeamPage(
      this.statements,
      { table: 'shared_volume', key: 'volume_id', column: 'region_id', columns: 'row.*' },
      asked,
      asked.region_id,
    );
    return { data: rows.map((raw) => volumeView(this.steps.rowOf(raw))), pagination };
  }

  async get({ volume_id }: SharedVolumePath, { caller }: CallContext): Promise<SharedVolume> {
    return volumeView(await this.find(volume_id, caller, 'readTeam'));
  }

  async resize({ volume_id, size_in_gb }: ResizeSharedVolume, context: CallContext): Promise<SharedVolume> {
    const found = await this.find(volume_id, context.caller, 'useResources');
    await this.gate.requireGrowth(context.caller, found.teamId, 'shared volume');
    return this.transactions.run(async (manager) => {
      await this.gate.holdOpen(manager, context.caller, found);
      const volume = await this.steps.lockLive(manager, volume_id);
      requireNoShrinking(Math.max(volume.sizeGb, volume.nextSizeGb ?? 0), size_in_gb);
      if (size_in_gb === (volume.nextSizeGb ?? volume.sizeGb)) return volumeView(volume);
      if (volume.state !== 'active') {
        throw new AppError(
          'conflict',
          `The volume is ${volumeView(volume).status}; only an active volume can be resized.`,
        );
      }
      const moved = await this.steps.move(manager, volume, 'GROW', causeOf(context), { nextSizeGb: size_in_gb });
      return volumeView(moved ?? volume);
    });
  }

  /** Deleted already: repeats are answered alike until it is gone. */
  async delete({ volume_id }: SharedVolumePath, context: CallContext): Promise<SharedVolume> {
    await this.find(volume_id, context.caller, 'useResources');
    return this.transactions.run(async (manager) => {
      const volume = await this.steps.lockLive(manager, volume_id);
      if (volume.state === 'deleting') return volumeView(volume);
      await this.mounts.requireUnmounted(manager, volume);
      return volumeView((await this.steps.move(manager, volume, 'DELETE', causeOf(context))) ?? volume);
    });
  }

  private async find(volumeId: string, caller: Caller, permission: Permission): Promise<VolumeEntity> {
    const query = `SELECT * FROM shared_volume WHERE volume_id = $1 AND state <> 'deleted'`;
    const [raw] = await this.statements.query(query, [volumeId]);
    return requireForCaller(raw && this.steps.rowOf(raw), 'shared volume', caller, permission);
  }
}

const turnOf = (teamId: string): string => `shared_volume ${teamId}`;

async function requireRoom(manager: EntityManager, teamId: string, name: string): Promise<void> {
  await takeTurn(manager, turnOf(teamId));
  const [{ live = 0, named = 0 } = {}] = await manager.query<{ live: number; named: number }[]>(
    `SELECT count(*)::int AS live, (count(*) FILTER (WHERE name = $2))::int AS named FROM shared_volume WHERE team_id = $1 AND state <> 'deleted'`,
    [teamId, name],
  );
  if (named > 0) throw new AppError('conflict', nameTaken(name));
  if (live >= mostOfTeam)
    throw new AppError('conflict', `The team has ${live} shared volumes, the maximum for a team.`);
}

const nameTaken = (name: string): string => `The team has a shared volume named ${name}.`;

function requireNoShrinking(presentGb: number, askedGb: number): void {
  if (askedGb >= presentGb) return;
  throw invalidField(
    'size_in_gb',
    'min',
    `must be at least ${presentGb}, its present or pending size; a volume cannot shrink`,
  );
}
