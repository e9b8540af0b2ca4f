import { permissions } from '@atoll/contracts';
import { userKeysChanged, type UserKeysChanged } from '@atoll/contracts/pods';
import { membershipChanged, type MembershipChanged } from '@atoll/contracts/teams';
import { Statements } from '@atoll/database';
import { OnEvent, type EventDelivery } from '@atoll/events';
import { touchRows } from '@atoll/state-machine';
import { keepMemberRole } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { GpuaasSettings } from '../../gpuaas-settings.js';
import { baremetalInstanceMachine, type BaremetalInstanceMachine } from '../../model/baremetal-instance.machine.js';

/** Bytes of all keys on one host: the script that writes them there writes no file larger than 2 MiB. */
const mostBytes = 1_048_576;

/** In SQL: the keys that go on the hosts of the teams that meet the condition. `$1`: the roles that may use a host. */
const keysOn = (ofTeams: `team_id ${string}`): string =>
  `SELECT team_id, key FROM (
     SELECT team_id, key, sum(octet_length(key) + 1) OVER (PARTITION BY team_id ORDER BY place, key) AS bytes
     FROM (
       SELECT team_id, key, min(place) AS place FROM (
         SELECT team_id, key, row_number() OVER (PARTITION BY team_id, user_id ORDER BY position) AS place
         FROM member_role JOIN user_ssh_keys USING (user_id), unnest(keys) WITH ORDINALITY AS of_user (key, position)
         WHERE role = ANY ($1::text[]) AND NOT (required_factor AND position = ANY (without_factor)) AND ${ofTeams}
       ) of_member GROUP BY team_id, key
     ) of_team
   ) in_turn WHERE bytes <= ${mostBytes}`;

/**
 * The public keys by which members of a team log in to its hosts: a projection of memberships and of the keys of users.
 * A change makes each active instance that it concerns look at its host.
 */
@Injectable()
export class TeamKeys {
  private readonly instances: BaremetalInstanceMachine;

  constructor(
    private readonly statements: Statements,
    settings: GpuaasSettings,
  ) {
    this.instances = baremetalInstanceMachine(settings.baremetalLimits);
  }

  /**
   * Each as a line of `authorized_keys`, without a comment, sorted: as many as go on a host. Where a team has more, the
   * oldest key of each member goes before the second of anyone.
   */
  async of(teamId: string): Promise<string[]> {
    const rows = await this.statements.query<{ key: string }>(
      `SELECT key FROM (${keysOn(`team_id = $2`)}) fitting ORDER BY key`,
      [permissions.useResources, teamId],
    );
    return rows.map(({ key }) => key);
  }

  /**
   * Active instances at rest whose host has other keys than the team has now: a change does not wait for a row that was
   * locked. Costs as much as the teams with active instances have keys.
   */
  async staleInstances(): Promise<string[]> {
    const rows = await this.statements.query<{ instance_id: string }>(
      // The keys of a team are worked out once, and not once for each of its instances.
      `SELECT instance_id FROM (
         SELECT team_id, array_agg(instance_id) AS ids, array_agg(placed_keys) AS placed FROM baremetal_instance
         WHERE state = 'active' AND due_at IS NULL AND parked_until IS NULL GROUP BY team_id
       ) held, LATERAL (
         SELECT coalesce(string_agg(key, E'\\n' ORDER BY key), '') AS keys FROM (${keysOn('team_id = held.team_id')}) fitting
       ) now, unnest(ids, placed) AS i (instance_id, placed_keys) WHERE now.keys IS DISTINCT FROM i.placed_keys`,
      [permissions.useResources],
    );
    return rows.map(({ instance_id }) => instance_id);
  }

  @OnEvent(membershipChanged, { consumer: 'baremetal-members' })
  async onMembership(changed: MembershipChanged, { manager }: EventDelivery): Promise<void> {
    await keepMemberRole(manager, changed);
    await this.touch(manager, 'team_id = $1', changed.team_id);
  }

  @OnEvent(userKeysChanged, { consumer: 'baremetal-keys' })
  async onKeys(
    { user_id, keys, without_factor = [], revision }: UserKeysChanged,
    { manager }: EventDelivery,
  ): Promise<void> {
    await manager.query(
      `INSERT INTO user_ssh_keys (user_id, keys, without_factor, revision) VALUES ($1, $2, $3, $4)
       ON CONFLICT (user_id) DO UPDATE
       SET keys = excluded.keys, without_factor = excluded.without_factor, revision = excluded.revision
       WHERE user_ssh_keys.revision < excluded.revision`,
      [user_id, keys, without_factor, revision],
    );
    await this.touch(manager, 'team_id IN (SELECT team_id FROM member_role WHERE user_id = $1)', user_id);
  }

  private async touch(manager: EntityManager, condition: string, id: string): Promise<void> {
    const rows = await manager.query<{ instance_id: string }[]>(
      `SELECT instance_id FROM baremetal_instance WHERE state = 'active' AND ${condition}`,
      [id],
    );
    await touchRows(
      manager,
      this.instances,
      rows.map(({ instance_id }) => instance_id),
    );
  }
}
