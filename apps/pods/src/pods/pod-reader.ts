import { notFound, type CallContext, type Caller, type Permission } from '@atoll/contracts';
import { type ListPods, type Pod, type PodPage, type PodPath } from '@atoll/contracts/pods';
import { Statements } from '@atoll/database';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { readTeamPage } from '../model/team-page.js';
import { requireForCaller } from '../model/live-row.js';
import type { PodEntity } from '../model/pod.entity.js';
import { PodStarts } from './pod-start.js';
import { PodSteps } from './pod-steps.js';
import { podView, shownColumns } from './pod-view.js';

/**
 * A pod of the subscription `$1`, if it is of the team `$2`. The next id is found by the index, of which one entry is
 * read; an id that may not be there PostgreSQL would look for in the whole table.
 */
const ownPod = `SELECT FROM (
    SELECT subscription_id, team_id FROM pod WHERE subscription_id >= $1 ORDER BY subscription_id LIMIT 1
  ) AS next WHERE subscription_id = $1 AND team_id = $2`;

/** Pods, each for the members of its team alone. */
@Injectable()
export class PodReader {
  constructor(
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
    private readonly pods: PodSteps,
    private readonly starts: PodStarts,
  ) {}

  async get({ pod_name }: PodPath, { caller }: CallContext): Promise<Pod> {
    return podView(await this.find(pod_name, caller, 'readTeam'));
  }

  async list(asked: ListPods, { caller, requestId }: CallContext): Promise<PodPage> {
    const { team_id, subscription_id } = asked;
    await this.teams.teamFor(caller, team_id, 'readTeam');
    if (subscription_id !== undefined) await this.requireSubscription(team_id, subscription_id, requestId);
    const { rows, pagination } = await readTeamPage(
      this.statements,
      { table: 'pod', key: 'pod_id', column: 'subscription_id', columns: shownColumns },
      asked,
      subscription_id,
    );
    return { data: rows.map((raw) => podView(this.pods.rowOf(raw))), pagination };
  }

  async find(podName: string, caller: Caller, permission: Permission): Promise<PodEntity> {
    const [raw] = await this.statements.query(`SELECT * FROM pod WHERE pod_name = $1 AND state <> 'deleted'`, [
      podName,
    ]);
    return requireForCaller(raw && this.pods.rowOf(raw), 'pod', caller, permission);
  }

  /** All pods of a subscription, deleted ones too, are of its team. gpuaas is asked where the team has none of it. */
  private async requireSubscription(teamId: string, id: string, requestId: string): Promise<void> {
    const pods = await this.statements.query(ownPod, [id, teamId]);
    if (pods.length === 0 && !(await this.starts.hasSubscription(teamId, id, requestId)))
      throw notFound('subscription');
  }
}
