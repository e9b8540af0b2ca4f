import { notFound, requirePlatformAdmin, requireWholeUser, type CallContext, type UserCaller } from '@atoll/contracts';
import { credentialsChanged, type CreateTeamWithPolicy, type NewMember, type Team } from '@atoll/contracts/teams';
import { newId, Writers } from '@atoll/database';
import { AppError, invalidField } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { ImagePolicyEntity } from '../model/image-policy.entity.js';
import { requireLiveCredential } from '../api-keys/live-credential.js';
import { InvitationLinks } from '../links/invitation-links.js';
import { Enrolment, statusOf, withMaskedKey, type Enrolled } from '../members/enrolment.js';
import { requireDistinct } from '../members/member-rules.js';
import { UserRegistry } from '../users/user-registry.js';
import { UserEntity } from '../model/user.entity.js';
import { WorkspaceEntity } from '../model/workspace.entity.js';
import { mostTeams, requireRoomForTeam } from '../changes/most-teams.js';
import { TeamChanges } from '../changes/team-changes.js';
import { TeamEntity } from '../model/team.entity.js';
import { readTeam } from './team.service.js';
import { TokenBuckets, type BucketRate } from '../tries/token-buckets.js';

const dayMs = 86_400_000;
/** Rows of deleted teams stay, here and in other services. */
const creations: BucketRate = { refillMs: dayMs / mostTeams, capacityMs: dayMs };

@Injectable()
export class TeamCreationService {
  constructor(
    private readonly writers: Writers,
    private readonly registry: UserRegistry,
    private readonly enrolment: Enrolment,
    private readonly changes: TeamChanges,
    private readonly invitationLinks: InvitationLinks,
    private readonly rpc: Rpc,
    private readonly buckets: TokenBuckets,
  ) {}

  /** The one answer that shows every member's key in full. Who is invited is sent an invitation. */
  async create({ members = [], ...body }: CreateTeamWithPolicy, context: CallContext): Promise<Team> {
    requireDistinct(members);
    if (body.image_policy_id !== undefined) requirePlatformAdmin(context.caller);
    const caller = requireWholeUser(context.caller, 'create another');
    const created = await this.writers.once(
      caller.userId,
      context,
      (manager) => this.make(manager, { ...body, members }, caller, context),
      {
        keep: withMaskedKeys,
      },
    );
    for (const { user_id } of created.members) this.rpc.publish(credentialsChanged, { user_id });
    return created;
  }

  private async make(
    manager: EntityManager,
    { name, description = '', members, image_policy_id }: CreateTeamWithPolicy & { members: NewMember[] },
    caller: UserCaller,
    context: CallContext,
  ): Promise<Team> {
    await requireLiveCredential(manager, caller);
    const people = await this.people(manager, caller, members);
    await requireRoomForTeam(manager, caller.userId);
    if (!caller.platformAdmin) await this.takeCreation(manager, caller.userId);
    const policyId = await policyFor(manager, image_policy_id);
    const team = manager.create(TeamEntity, { id: newId(), name, description, policyId });
    await manager.insert(TeamEntity, team);
    const workspace = { id: newId(), name: 'default' };
    await manager.insert(WorkspaceEntity, { ...workspace, teamId: team.id, isDefault: true });
    const keys = await this.enrolment.enrol(manager, team, people, { issuedByOwner: true, caller });
    await this.changes.publishCreated(manager, team, [{ ...workspace, is_deleted: false }], context);
    const userIds = people.map(({ userId }) => userId);
    await this.changes.publishMembers(manager, team, userIds, context, { hadJoined: false });
    const created = await readTeam(manager, team.id);
    const shown = created.members.map((member) => ({ ...member, api_key: keys.get(member.user_id) ?? null }));
    return { ...created, members: await this.invitationLinks.sendAll(manager, team, shown, { issuedByOwner: true }) };
  }

  private async takeCreation(manager: EntityManager, userId: string): Promise<void> {
    if (await this.buckets.takeWithin(manager, [userId, 'teams'], creations)) return;
    const { refillMs } = creations;
    throw new AppError(
      'too_many_requests',
      `A user creates at most ${mostTeams} teams at once, and one in ${refillMs / 60_000} minutes after that.`,
      { retryAfterSeconds: Math.ceil(refillMs / 1000) },
    );
  }

  /**
   * The caller first, as team_owner, whether named or not; then the others, in their order. An operator who names an
   * owner creates the team for others: then only those named are members.
   */
  private async people(manager: EntityManager, caller: UserCaller, members: NewMember[]): Promise<Enrolled[]> {
    const creator = await manager.findOneBy(UserEntity, { id: caller.userId });
    if (!creator) throw notFound('user');
    const isForOthers = caller.platformAdmin && members.some(({ role }) => role === 'team_owner');
    const own = isForOthers ? -1 : members.findIndex(({ email }) => email === creator.email);
    if (own !== -1 && members[own]?.role !== 'team_owner') {
      throw invalidField(
        `members.${own}.role`,
        'isCaller',
        'must be team_owner: this is your own address, and the caller becomes team_owner',
      );
    }
    const named = members.filter((_member, index) => index !== own);
    const users = await this.registry.findOrCreate(manager, named);
    const enrolled = named.map(({ role, name }, index) => {
      const userId = users[index] ?? '';
      return { userId, role, name, status: statusOf(caller, userId) };
    });
    const { id: userId, name } = creator;
    return isForOthers ? enrolled : [{ userId, role: 'team_owner', name, status: 'active' }, ...enrolled];
  }
}

/** The policy of this id, which is not deleted before the team is created; the default one where no id is given. */
async function policyFor(manager: EntityManager, id: string | undefined): Promise<string> {
  const where = id === undefined ? { isDefault: true } : { id };
  const policy = await manager.findOne(ImagePolicyEntity, {
    where,
    ...(id !== undefined && { lock: { mode: 'for_no_key_update' } }),
  });
  if (!policy) throw notFound('image policy');
  return policy.id;
}

/** What is kept of an answer that shows keys in full, and links. */
function withMaskedKeys(team: Team): Team {
  return { ...team, members: team.members.map(withMaskedKey) };
}
