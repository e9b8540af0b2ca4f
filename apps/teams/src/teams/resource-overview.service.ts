import {
  gpuHoldings,
  notFound,
  requirePermission,
  type CallContext,
  type GpuHoldings,
  type Operation,
  type ResourceOverview,
  type TeamPath,
} from '@atoll/contracts';
import { Statements } from '@atoll/database';
import { AppError, isAppError } from '@atoll/errors';
import { remainingMs, Rpc, systemContext } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';

/** Of the caller's patience, what is left to say which service did not answer. */
const answeringMs = 500;
const patienceMs = 2_000;

/** What a team holds now, by what each service that holds something says; never without one of them. */
@Injectable()
export class ResourceOverviewService {
  private readonly logger = new Logger(ResourceOverviewService.name);

  constructor(
    private readonly statements: Statements,
    private readonly rpc: Rpc,
  ) {}

  async get({ team_id }: TeamPath, context: CallContext): Promise<ResourceOverview> {
    requirePermission(context.caller, team_id, 'readTeam');
    const found = await this.statements.query('teams.exists', 'SELECT FROM team WHERE id = $1 AND deleted_at IS NULL', [team_id]);
    if (found.length === 0) throw notFound('team');
    const { as_of, regions } = await this.ask(gpuHoldings.ofTeam, { team_id }, context);
    const sum = (kind: keyof GpuHoldings) => regions.reduce((total, region) => total + region[kind], 0);
    const total = {
      vgpus: sum('vgpus'),
      vgpus_in_use: sum('vgpus_in_use'),
      gpus: sum('gpus'),
      gpu_subscriptions: sum('gpu_subscriptions'),
      gpu_workloads: sum('gpu_workloads'),
      baremetal_instances: sum('baremetal_instances'),
      baremetal_gpus: sum('baremetal_gpus'),
    };
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
      return await this.rpc.call(operation, input, systemContext('teams', { deadlineMs, requestId: context.requestId }));
    } catch (error) {
      const isAway = isAppError(error) && (error.code === 'unavailable' || error.code === 'deadline_exceeded');
      if (!isAway)
        this.logger.warn(`${service} failed to answer what a team holds: ${error instanceof Error ? error.message : String(error)}`);
      const sentence = `The service ${service} does not say at the moment what the team holds.`;
      throw new AppError('unavailable', sentence, { retryAfterSeconds: 2 }, { cause: error });
    }
  }
}
