import {
  notFound,
  pageWindow,
  requirePermission,
  type CallContext,
  type Caller,
  type Nothing,
  type Permission,
} from '@atoll/contracts';
import {
  credentialsChanged,
  type AddedMembers,
  type AddMember,
  type AddMembers,
  type ChangeRole,
  type InvitationPath,
  type IssueMemberKey,
  type ListMembers,
  type MemberPage,
  type MemberPath,
  type TeamMember,
} from '@atoll/contracts/teams';
import { databaseNowMs, readPage, Statements, Writers } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { In, type EntityManager } from 'typeorm';
import { ApiKeysService } from '../api-keys/api-key.service.js';
import { settleTerms } from '../api-keys/key-terms.js';
import { requireFreshCredential, requireIssuingCredential } from '../api-keys/live-credential.js';
import { InvitationLinks } from '../links/invitation-links.js';
import { LinkTokens } from '../tokens/link-tokens.js';
import { TeamChanges } from '../changes/team-changes.js';
import { UserRegistry } from '../users/user-registry.js';
import { requirePermissionNow } from './caller-now.js';
import { Enrolment, statusOf, withMaskedKey } from './enrolment.js';
import { memberJoins, memberJson, memberQuery } from '../views/member-query.js';
import {
  findInvitation,
  hasPowerOfOwner,
  permissionOver,
  requireAnotherOwner,
  requireDistinct,
  requireMayRemove,
  requireNoneConfined,
  requireOwner,
  requireRemovable,
  requireRoomForMembers,
  requireTeam,
  roleOf,
} from './member-rules.js';
import { checkLater } from '../model/account-check.entity.js';
import { MembershipEntity } from '../model/membership.entity.js';
import type { TeamEntity } from '../model/team.entity.js';
import { successorTerms } from './successor-terms.js';

@Injectable()
export class MembersService {
  constructor(
    private readonly statements: Statements,
    private readonly writers: Writers,
    private readonly changes: TeamChanges,
    private readonly registry: UserRegistry,
    private readonly enrolment: Enrolment,
    private readonly apiKeys: ApiKeysService,
    private readonly invitationLinks: InvitationLinks,
    private readonly links: LinkTokens,
    private readonly rpc: Rpc,
  ) {}

  async list({ team_id, ...asked }: ListMembers, { caller }: CallContext): Promise<MemberPage> {
    requirePermission(caller, team_id, 'readTeam');
    const { page, limit, offset } = pageWindow(asked, 0);
    const { total, rows } = await readPage<{ member: TeamMember }>(this.statements, {
      from: 'membership WHERE team_id = $1 AND EXISTS (SELECT FROM team WHERE team.id = $1 AND deleted_at IS NULL)',
      order: 'created_at, id',
      window: 'LIMIT $2 OFFSET $3',
      columns: `${memberJson('row')} AS member`,
      joins: memberJoins('row'),
      values: [team_id, limit, offset],
    });
    if (total === 0) await requireTeam(this.statements, team_id);
    return { data: rows.map(({ member }) => member), pagination: { page, limit, total } };
  }

  async add({ team_id, ...person }: AddMember, context: CallContext): Promise<TeamMember> {
    requirePermission(context.caller, team_id, 'manageTeam');
    const enrol = async (manager: EntityManager): Promise<TeamMember> => {
      const [added] = await this.addWithin(manager, { team_id, members: [person] }, context);
      if (!added) throw notFound('member');
      return added;
    };
    const member = await this.writers.once(team_id, context, enrol, { keep: withMaskedKey });
    this.rpc.publish(credentialsChanged, { user_id: member.user_id });
    return member;
  }

  /** All of them or none. */
  async addAll(people: AddMembers, context: CallContext): Promise<AddedMembers> {
    requirePermission(context.caller, people.team_id, 'manageTeam');
    requireDistinct(people.members);
    const enrol = async (manager: EntityManager) => ({ members: await this.addWithin(manager, people, context) });
    const added = await this.writers.once(people.team_id, context, enrol, {
      keep: ({ members }) => ({ members: members.map(withMaskedKey) }),
    });
    for (const { user_id } of added.members) this.rpc.publish(credentialsChanged, { user_id });
    return added;
  }

  private async addWithin(manager: EntityManager, people: AddMembers, context: CallContext): Promise<TeamMember[]> {
    const { team, members, issuedByOwner } = await this.enrolWithin(manager, people, context);
    return this.invitationLinks.sendAll(manager, team, members, { issuedByOwner });
  }

  /** The new members with their keys, before any invitation is sent. */
  async enrolWithin(
    manager: EntityManager,
    { team_id, members }: AddMembers,
    context: CallContext,
  ): Promise<{ team: TeamEntity; members: TeamMember[]; issuedByOwner: boolean }> {
    const team = await this.changes.lockForGrowth(manager, team_id, context.caller);
    const caller = await requirePermissionNow(manager, context.caller, team_id, 'manageTeam');
    if (members.some(({ role }) => role === 'team_owner')) requireOwner(caller, team_id, 'make somebody team_owner');
    const userIds = await this.registry.findOrCreate(manager, members);
    if (await manager.existsBy(MembershipEntity, { teamId: team_id, userId: In(userIds) })) {
      throw new AppError(
        'conflict',
        `${members.length === 1 ? 'This person is' : 'One of these people is'} a member of the team already.`,
      );
    }
    await requireRoomForMembers(manager, team_id, members.length);
    await requireNoneConfined(
      manager,
      team_id,
      userIds.filter((_id, at) => members[at]?.role === 'team_owner'),
    );
    const people = members.map(({ role, name }, at) => ({
      userId: userIds[at] ?? '',
      role,
      name,
      status: statusOf(caller, userIds[at] ?? ''),
    }));
    const issuedByOwner = hasPowerOfOwner(caller, team_id);
    const keys = await this.enrolment.enrol(manager, team, people, { issuedByOwner, caller });
    await this.changes.saveMembers(manager, team, userIds, context, { hadJoined: false });
    const added: TeamMember[] = [];
    for (const userId of userIds) {
      added.push({ ...(await this.view(manager, { teamId: team_id, userId })), api_key: keys.get(userId) ?? null });
    }
    return { team, members: added, issuedByOwner };
  }

  /** With `keepsOwners` a team_owner is not made a team_admin, and stays. */
  async changeRole(
    { team_id, user_id, role }: ChangeRole,
    context: CallContext,
    { keepsOwners = false } = {},
  ): Promise<TeamMember> {
    requirePermission(context.caller, team_id, 'manageTeam');
    const member = await this.writers.run(team_id, context, async (manager) => {
      const team = await this.changes.lockForGrowth(manager, team_id, context.caller);
      const caller = await requirePermissionNow(manager, context.caller, team_id, 'manageTeam');
      const membership = await this.find(manager, { teamId: team_id, userId: user_id });
      if (keepsOwners && membership.role === 'team_owner' && role === 'team_admin')
        return this.view(manager, membership);
      if (membership.role === 'team_owner' || role === 'team_owner') {
        requireOwner(caller, team_id, 'make somebody team_owner or change the role of one');
      }
      if (membership.role === 'team_owner' && role !== 'team_owner') await requireAnotherOwner(manager, membership);
      if (membership.role !== role) {
        if (role === 'team_owner') await requireNoneConfined(manager, team_id, [user_id]);
        await manager.update(MembershipEntity, { id: membership.id }, { role });
        if (role === 'team_owner') {
          await this.apiKeys.revokeUnlessIssuedByOwner(manager, membership);
          await this.links.retireUnlessIssuedByOwner(manager, membership);
        }
        const hadJoined = membership.status !== 'invited';
        await this.changes.saveMember(manager, team, user_id, context, { hadJoined });
      }
      return this.view(manager, membership);
    });
    this.rpc.publish(credentialsChanged, { user_id });
    return member;
  }

  async remove({ team_id, user_id }: MemberPath, context: CallContext): Promise<Nothing> {
    const permission = permissionOver(user_id, context.caller);
    requireMayRemove(context.caller, { teamId: team_id, userId: user_id });
    const find = (manager: EntityManager) => this.find(manager, { teamId: team_id, userId: user_id });
    return this.removeFound(team_id, { permission, find }, context);
  }

  /** A member who was invited, and has not accepted by the time that the team is locked. */
  async revokeInvitation({ team_id, invitation_id }: InvitationPath, context: CallContext): Promise<Nothing> {
    requirePermission(context.caller, team_id, 'manageTeam');
    const find = (manager: EntityManager) => findInvitation(manager, { team_id, invitation_id });
    return this.removeFound(team_id, { permission: 'manageTeam', find, what: 'invitation' }, context);
  }

  private async removeFound(
    teamId: string,
    {
      permission,
      find,
      what,
    }: { permission: Permission; find: (manager: EntityManager) => Promise<MembershipEntity>; what?: string },
    context: CallContext,
  ): Promise<Nothing> {
    const userId = await this.writers.run(teamId, context, async (manager) => {
      const team = await this.changes.lock(manager, teamId, what);
      const caller = await requirePermissionNow(manager, context.caller, teamId, permission);
      const membership = await find(manager);
      await requireRemovable(manager, caller, membership);
      // The keys to the team go with the membership: their foreign key cascades.
      await manager.delete(MembershipEntity, { id: membership.id });
      await checkLater(manager, membership.userId);
      const hadJoined = membership.status !== 'invited';
      await this.changes.saveMember(manager, team, membership.userId, context, { hadJoined });
      return membership.userId;
    });
    this.rpc.publish(credentialsChanged, { user_id: userId });
    return {};
  }

  async issueKey({ team_id, user_id, ...terms }: IssueMemberKey, context: CallContext): Promise<TeamMember> {
    const holder = { teamId: team_id, userId: user_id };
    const permission = permissionOver(user_id, context.caller);
    const member = await this.writers.once(
      laneOf(context.caller, team_id),
      context,
      async (manager) => {
        // In here, since an answer that was kept is given again even where the expiry_date has passed since; and first,
        // as 400 goes before 403.
        const nowMs = await databaseNowMs(manager);
        const asked = settleTerms(terms, nowMs);
        requirePermission(context.caller, team_id, permission);
        await this.changes.lockForGrowth(manager, team_id, context.caller);
        const caller = await requirePermissionNow(manager, context.caller, team_id, permission);
        await this.requirePowerOverKeys(manager, holder, caller);
        await requireIssuingCredential(manager, caller);
        if (caller.kind === 'user' && caller.userId === user_id) await requireFreshCredential(manager, caller);
        const settled = successorTerms(caller, holder, { ...asked, nowMs }, await this.apiKeys.last(manager, holder));
        await this.apiKeys.retire(manager, holder, asked.graceSeconds);
        const issuedByOwner = hasPowerOfOwner(caller, team_id);
        const [key = null] = await this.apiKeys.issue(manager, [{ ...holder, ...settled, issuedByOwner }], { caller });
        return { ...(await this.view(manager, holder)), api_key: key };
      },
      { keep: withMaskedKey },
    );
    this.rpc.publish(credentialsChanged, { user_id });
    return member;
  }

  async revokeKey({ team_id, user_id }: MemberPath, context: CallContext): Promise<Nothing> {
    const holder = { teamId: team_id, userId: user_id };
    const permission = permissionOver(user_id, context.caller);
    requirePermission(context.caller, team_id, permission);
    await this.writers.run(team_id, context, async (manager) => {
      await this.changes.lock(manager, team_id);
      const caller = await requirePermissionNow(manager, context.caller, team_id, permission);
      await this.requirePowerOverKeys(manager, holder, caller);
      await this.apiKeys.revoke(manager, holder);
    });
    this.rpc.publish(credentialsChanged, { user_id });
    return {};
  }

  /** The key of an owner is an owner's power. */
  private async requirePowerOverKeys(
    manager: EntityManager,
    member: { teamId: string; userId: string },
    caller: Caller,
  ): Promise<void> {
    const membership = await this.find(manager, member);
    const isSelf = caller.kind === 'user' && caller.userId === membership.userId;
    if (membership.role === 'team_owner' && !isSelf)
      requireOwner(caller, membership.teamId, 'manage the key of another team_owner');
  }

  private async find(
    manager: EntityManager,
    { teamId, userId }: { teamId: string; userId: string },
  ): Promise<MembershipEntity> {
    const membership = await manager.findOneBy(MembershipEntity, { teamId, userId });
    if (!membership) throw notFound('member');
    return membership;
  }

  private async view(
    manager: EntityManager,
    { teamId, userId }: { teamId: string; userId: string },
  ): Promise<TeamMember> {
    const [row] = await manager.query<{ member: TeamMember }[]>(memberQuery, [teamId, userId]);
    if (!row) throw notFound('member');
    return row.member;
  }
}

/** A caller who is refused in there does not wait, or make wait, among the writers of a team that is another's. */
function laneOf(caller: Caller, teamId: string): string {
  return caller.kind === 'system' || hasPowerOfOwner(caller, teamId) || roleOf(caller, teamId) ? teamId : caller.userId;
}
