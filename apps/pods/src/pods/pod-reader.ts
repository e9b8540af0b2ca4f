import { notFound, pageWindow, requirePermission, type CallContext, type Caller, type Permission } from '@atoll/contracts';
import { type ListPods, type Pod, type PodPage, type PodPath } from '@atoll/contracts/pods';
import { readPage, Statements } from '@atoll/database';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { PodEntity } from '../model/pod.entity.js';
import { PodSteps } from './pod-steps.js';
import { podView } from './pod-view.js';

/** Pods, each for the members of its team alone. */
@Injectable()
export class PodReader {
  constructor(
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
    private readonly pods: PodSteps,
  ) {}

  async get({ pod_name }: PodPath, { caller }: CallContext): Promise<Pod> {
    return podView(await this.find(pod_name, caller, 'readTeam'));
  }

  async list(asked: ListPods, { caller }: CallContext): Promise<PodPage> {
    const { team_id, subscription_id, include_ended } = asked;
    requirePermission(caller, team_id, 'readTeam');
    await this.teams.team(team_id);
    const { page, limit, offset } = pageWindow(asked, 1);
    const isWhole = include_ended === 'true';
    // What is stopped can be started again, so it is listed; what was deleted has ended.
    const where = `team_id = $1 AND ($2::bigint IS NULL OR subscription_id = $2)${isWhole ? '' : ` AND state <> 'deleted'`}`;
    const { total, rows } = await readPage(this.statements, {
      name: `pods.list.${isWhole}`,
      count: `SELECT count(*)::int FROM pod WHERE ${where}`,
      rows: `SELECT * FROM pod WHERE ${where} ORDER BY created_at, pod_id LIMIT $3 OFFSET $4`,
      order: 'created_at, pod_id',
      values: [team_id, subscription_id ?? null, limit, offset],
    });
    return { data: rows.map((raw) => podView(this.pods.rowOf(raw))), pagination: { page, limit, total } };
  }

  /** The pod, for a caller who has the permission in its team. Throws `not_found`, in the words for one that does not exist. */
  async find(podName: string, caller: Caller, permission: Permission): Promise<PodEntity> {
    const [raw] = await this.statements.query('pods.find', `SELECT * FROM pod WHERE pod_name = $1 AND state <> 'deleted'`, [podName]);
    if (!raw) throw notFound('pod');
    const pod = this.pods.rowOf(raw);
    requirePermission(caller, pod.teamId, permission, 'pod');
    return pod;
  }
}
