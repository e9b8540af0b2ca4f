import { type CallContext, type TeamRole } from '@atoll/contracts';
import { credentialsChanged } from '@atoll/contracts/teams';
import { newId, Statements, Writers } from '@atoll/database';
import { isAppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { ApiKeysService } from '../api-keys/api-key.service.js';
import { requireAnotherOwner, requireRoomForMembers } from '../members/member-rules.js';
import { MembershipEntity } from '../model/membership.entity.js';
import { hasRoomForTeam, mostTeams } from '../changes/most-teams.js';
import { TeamChanges } from '../changes/team-changes.js';
import { UserEntity } from '../model/user.entity.js';
import type { SsoProviderSettings } from './sso-file.js';

/**
 * Updates the memberships that a provider controls to its current claims. Memberships created otherwise do not change.
 */
@Injectable()
export class SsoMemberships {
  private readonly logger = new Logger('Single sign-on');

  constructor(
    private readonly statements: Statements,
    private readonly writers: Writers,
    private readonly changes: TeamChanges,
    private readonly apiKeys: ApiKeysService,
    private readonly rpc: Rpc,
  ) {}

  /** A team that cannot be changed keeps nobody from logging in: it is logged. */
  async apply(
    userId: string,
    { id: provider, mapping }: SsoProviderSettings,
    values: readonly string[],
    context: CallContext,
  ): Promise<void> {
    const wanted = new Map<string, TeamRole>();
    for (const { value, team_id, role } of mapping.grants)
      if (values.includes(value) && !wanted.has(team_id)) wanted.set(team_id, role);
    const query = 'SELECT team_id FROM membership WHERE user_id = $1 AND sso_provider = $2';
    const made = await this.statements.query<{ team_id: string }>(query, [userId, provider]);
    // What is taken back makes room for what is given.
    for (const teamId of new Set([...made.map(({ team_id }) => team_id), ...wanted.keys()])) {
      try {
        const work = (manager: EntityManager) =>
          this.change(manager, { teamId, userId, provider, role: wanted.get(teamId) }, context);
        if ((await this.writers.run(teamId, context, work)) === 'full') {
          this.logger.warn({
            message: `The mapping of ${provider} gives a user more than ${mostTeams} teams`,
            user_id: userId,
          });
          break;
        }
        this.rpc.publish(credentialsChanged, { user_id: userId });
      } catch (error) {
        if (!isAppError(error)) throw error;
        this.logger.warn(`The mapping of ${provider} cannot be applied to team ${teamId}: ${error.message}`);
      }
    }
  }

  private async change(
    manager: EntityManager,
    {
      teamId,
      userId,
      provider,
      role,
    }: { teamId: string; userId: string; provider: string; role: TeamRole | undefined },
    context: CallContext,
  ): Promise<'full' | undefined> {
    const team = await this.changes.lock(manager, teamId);
    const membership = await manager.findOneBy(MembershipEntity, { teamId, userId });
    if (membership && membership.ssoProvider !== provider) return undefined;
    if (membership?.role === role) return undefined;
    if (membership?.role === 'team_owner') await requireAnotherOwner(manager, membership);
    if (membership && role) {
      await manager.update(MembershipEntity, { id: membership.id }, { role });
      if (role === 'team_owner') await this.apiKeys.revokeUnlessIssuedByOwner(manager, membership);
    } else if (membership) await manager.delete(MembershipEntity, { id: membership.id });
    else if (role) {
      this.changes.requireMayJoin(team, context);
      await requireRoomForMembers(manager, teamId, 1);
      if (!(await hasRoomForTeam(manager, userId))) return 'full';
      const { name } = await manager.findOneByOrFail(UserEntity, { id: userId });
      await manager.insert(MembershipEntity, {
        id: newId(),
        teamId,
        userId,
        role,
        name,
        status: 'active',
        requiredFactorAtJoin: team.requireSecondFactor,
        ssoProvider: provider,
      });
    }
    await this.changes.saveMember(manager, team, userId, context, { hadJoined: membership !== null });
    return undefined;
  }
}
