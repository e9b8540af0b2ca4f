import { requirePermission, type CallContext, type Operation, type TeamPath } from '@atoll/contracts';
import { gpuHoldings } from '@atoll/contracts/gpuaas';
import { podHoldings } from '@atoll/contracts/pods';
import { type RegionalHoldings, type ResourceHoldings, type ResourceOverview } from '@atoll/contracts/teams';
import { Statements } from '@atoll/database';
import { AppError, isAppError, messageOf } from '@atoll/errors';
import { remainingMs, Rpc, systemContext } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import { requireTeam } from '../members/member-rules.js';

/** Of the caller's patience, what is left to say which service did not answer. */
const answeringMs = 500;
const patienceMs = 2_000;

const nothing: ResourceHoldings = {
  vgpus: 0,
  vgpus_in_use: 0,
  gpus: 0,
  gpu_subscriptions: 0,
  gpu_workloads: 0,
  baremetal_instances: 0,
  baremetal_gpus: 0,
  pods: 0,
  pods_in_use: 0,
  vms: 0,
  vms_in_use: 0,
  shared_volumes: 0,
  storage_in_gb: 0,
};
const kinds = Object.keys(nothing) as (keyof ResourceHoldings)[];

/** What a team holds now, from the answers of all services; fails if one does not answer. */
@Injectable()
export class ResourceOverviewService {
  private readonly logger = new Logger(ResourceOverviewService.name);

  constructor(
    private readonly statements: Statements,
    private readonly rpc: Rpc,
  ) {}

  async get({ team_id }: TeamPath, context: CallContext): Promise<ResourceOverview> {
    requirePermission(context.caller, team_id, 'readTeam');
    await requireTeam(this.statements, team_id);
    const [gpus, pods] = await Promise.all([
      this.ask(gpuHoldings.ofTeam, { team_id }, context),
      this.ask(podHoldings.ofTeam, { team_id }, context),
    ]);
    const byRegion = new Map<string, RegionalHoldings>();
    for (const region of [...gpus.regions, ...pods.regions]) {
      byRegion.set(region.region_id, { ...nothing, ...byRegion.get(region.region_id), ...region });
    }
    const regions = [...byRegion.values()].toSorted((one, other) => Number(one.region_id) - Number(other.region_id));
    const total = { ...nothing };
    for (const kind of kinds) total[kind] = regions.reduce((sum, region) => sum + region[kind], 0);
    // The older of two instants: each figure was so then, or later.
    const as_of = gpus.as_of < pods.as_of ? gpus.as_of : pods.as_of;
    return { team_id, as_of, total, regions };
  }

  /** Throws `unavailable`, naming the service, for whatever keeps it from answering in time. */
  private async ask<Input extends object, Output extends object>(
    operation: Operation<Input, Output>,
    input: Input,
    context: CallContext,
  ): Promise<Output> {
    const { service } = operation;
    const deadlineMs = Math.min(patienceMs, Math.max(0, remainingMs(context) - answeringMs));
    try {
      return await this.rpc.call(
        operation,
        input,
        systemContext('teams', { deadlineMs, requestId: context.requestId }),
      );
    } catch (error) {
      const isAway = isAppError(error) && (error.code === 'unavailable' || error.code === 'deadline_exceeded');
      if (!isAway) this.logger.warn(`${service} failed to answer what a team holds: ${messageOf(error)}`);
      const sentence = `The service ${service} cannot say at the moment what the team holds.`;
      throw new AppError('unavailable', sentence, { retryAfterSeconds: 2 }, { cause: error });
    }
  }
}
