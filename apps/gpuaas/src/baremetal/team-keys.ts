import { permissions } from '@atoll/contracts';
import { userKeysChanged, type UserKeysChanged } from '@atoll/contracts/pods';
import { membershipChanged, type MembershipChanged } from '@atoll/contracts/teams';
import { Statements } from '@atoll/database';
import { OnEvent, type EventDelivery } from '@atoll/events';
import { touchRows } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { GpuaasSettings } from '../gpuaas-settings.js';
import { baremetalInstanceMachine, type BaremetalInstanceMachine } from '../model/baremetal-instance.machine.js';

/**
 * The public keys by which members of a team log in to its hosts: a projection of memberships and of the keys of users. A change makes
 * each active instance that it concerns look at its host.
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

  /** Each as a line of `authorized_keys`, without a comment, sorted. */
  async of(teamId: string): Promise<string[]> {
    const rows = await this.statements.query<{ key: string }>(
      'baremetal.team-keys',
      `SELECT DISTINCT key FROM member_role JOIN user_ssh_keys USING (user_id), unnest(keys) key
       WHERE team_id = $1 AND role = ANY ($2::text[]) ORDER BY key`,
      [teamId, permissions.useResources],
    );
    return rows.map(({ key }) => key);
  }

  @OnEvent(membershipChanged, { consumer: 'baremetal-members' })
  async onMembership({ team_id, user_id, role, revision }: MembershipChanged, { manager }: EventDelivery): Promise<void> {
    await manager.query(
      `INSERT INTO member_role (team_id, user_id, role, revision) VALUES ($1, $2, $3, $4)
       ON CONFLICT (team_id, user_id) DO UPDATE SET role = excluded.role, revision = excluded.revision
       WHERE member_role.revision < excluded.revision`,
      [team_id, user_id, role, revision],
    );
    await this.touch(manager, 'team_id = $1', team_id);
  }

  @OnEvent(userKeysChanged, { consumer: 'baremetal-keys' })
  async onKeys({ user_id, keys, revision }: UserKeysChanged, { manager }: EventDelivery): Promise<void> {
    await manager.query(
      `INSERT INTO user_ssh_keys (user_id, keys, revision) VALUES ($1, $2, $3)
       ON CONFLICT (user_id) DO UPDATE SET keys = excluded.keys, revision = excluded.revision WHERE user_ssh_keys.revision < excluded.revision`,
      [user_id, keys, revision],
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
