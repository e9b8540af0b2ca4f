import { permissions } from '@atoll/contracts';
import { userKeysChanged, type UserKeysChanged } from '@atoll/contracts/pods';
import { membershipChanged, type MembershipChanged } from '@atoll/contracts/teams';
import { Statements } from '@atoll/database';
import { OnEvent, type EventDelivery } from '@atoll/events';
import { touchRows } from '@atoll/state-machine';
import { keepMemberRole } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { vmMachine } from '../model/vm.machine.js';

/** Bytes of all keys of a VM, as on a bare-metal host. */
const mostBytes = 1_048_576;

/**
 * The SSH keys that open the VMs of a team: of the members whose role may use them, but none that was added without a
 * second factor where the team required one when its user joined. A change makes each VM that it concerns be told.
 */
@Injectable()
export class VmKeys {
  constructor(private readonly statements: Statements) {}

  /**
   * Each as a line of `authorized_keys`, without a comment, sorted: as many as have 1 MiB together. Where a team has
   * more, the oldest key of each member goes before the second of anyone.
   */
  async of(teamId: string): Promise<string[]> {
    const rows = await this.statements.query<{ key: string }>(
      `SELECT key FROM (
         SELECT key, sum(octet_length(key) + 1) OVER (ORDER BY place, key) AS bytes FROM (
           SELECT key, min(place) AS place FROM (
             SELECT public_key AS key, row_number() OVER (PARTITION BY user_id ORDER BY created_at, ssh_key_id) AS place
             FROM member_role JOIN ssh_key USING (user_id)
             WHERE team_id = $1 AND role = ANY ($2::text[]) AND NOT (required_factor AND lacks_second_factor)
           ) of_user GROUP BY key
         ) of_team
       ) in_turn WHERE bytes <= ${mostBytes} ORDER BY key`,
      [teamId, permissions.useResources],
    );
    return rows.map(({ key }) => key);
  }

  @OnEvent(membershipChanged, { consumer: 'vm-members' })
  async onMembership(changed: MembershipChanged, { manager }: EventDelivery): Promise<void> {
    await keepMemberRole(manager, changed);
    await this.touch(manager, 'team_id = $1', changed.team_id);
  }

  /** Of this service itself: whoever changes a key does not wait for VMs. */
  @OnEvent(userKeysChanged, { consumer: 'vm-keys' })
  async onKeys({ user_id }: UserKeysChanged, { manager }: EventDelivery): Promise<void> {
    await this.touch(manager, 'team_id IN (SELECT team_id FROM member_role WHERE user_id = $1)', user_id);
  }

  /** Waits for rows that are locked: no VM is passed over. */
  private async touch(manager: EntityManager, condition: string, id: string): Promise<void> {
    const rows = await manager.query<{ instance_id: string }[]>(
      `SELECT instance_id FROM vm WHERE state IN ('starting', 'running') AND ${condition} ORDER BY instance_id FOR NO KEY UPDATE`,
      [id],
    );
    await touchRows(
      manager,
      vmMachine,
      rows.map(({ instance_id }) => instance_id),
    );
  }
}
