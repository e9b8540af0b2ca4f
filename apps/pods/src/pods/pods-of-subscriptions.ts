import type { CallContext } from '@atoll/contracts';
import { podsAtOnce, type PodOnSubscription, type PodsAfter, type PodsOnSubscriptions } from '@atoll/contracts/pods';
import { nilId, Statements } from '@atoll/database';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { runStatus } from '../model/run-states.js';

/**
 * The pods are chosen before they are ordered, so that the index of all pods by id is not read for those of one team.
 */
const podsQuery = `WITH chosen AS MATERIALIZED (
    SELECT pod_id, pod_name, subscription_id, state, vgpus, image, volumes FROM pod
    WHERE team_id = $1 AND subscription_id = ANY ($2::bigint[]) AND pod_id > $3 AND state <> 'deleted'
  ) SELECT * FROM chosen ORDER BY pod_id LIMIT ${podsAtOnce}`;

type Row = Omit<PodOnSubscription, 'status'> & { state: string };

/** The pods of many subscriptions, a thousand in one statement. */
@Injectable()
export class PodsOfSubscriptions {
  constructor(
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
  ) {}

  async after(
    { team_id, subscription_ids, pod_id = nilId }: PodsAfter,
    { caller }: CallContext,
  ): Promise<PodsOnSubscriptions> {
    await this.teams.teamFor(caller, team_id, 'readTeam');
    const rows = await this.statements.query<Row>(podsQuery, [team_id, subscription_ids, pod_id]);
    return { data: rows.map(({ state, ...pod }) => ({ ...pod, status: runStatus(state) })) };
  }
}
