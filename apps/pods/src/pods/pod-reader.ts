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
    const { rows, pagination } = await readTeamPage(
      this.statements,
      { table: 'pod', key: 'pod_id', column: 'subscription_id', columns: shownColumns },
      asked,
      subscription_id,
    );
    if (pagination.total === 0 && subscription_id !== undefined) {
      const found = await this.starts.subscription(subscription_id, 1, requestId);
      if (found.team_id !== team_id) throw notFound('subscription');
    }
    return { data: rows.map((raw) => podView(this.pods.rowOf(raw))), pagination };
  }

  async find(podName: string, caller: Caller, permission: Permission): Promise<PodEntity> {
    const [raw] = await this.statements.query(`SELECT * FROM pod WHERE pod_name = $1 AND state <> 'deleted'`, [
      podName,
    ]);
    return requireForCaller(raw && this.pods.rowOf(raw), 'pod', caller, permission);
  }
}
