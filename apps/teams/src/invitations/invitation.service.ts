import {
  allOrPage,
  notFound,
  requirePermission,
  requireWholeUser,
  windowIfLimited,
  type CallContext,
  type Nothing,
  type TeamPath,
} from '@atoll/contracts';
import {
  credentialsChanged,
  type Invitation,
  type InvitationPath,
  type InvitationList,
  type ListInvitations,
  type SentInvitation,
} from '@atoll/contracts/teams';
import { instantJson, readPage, Statements, Writers } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { requireLiveCredential } from '../api-keys/live-credential.js';
import { requirePermissionNow } from '../members/caller-now.js';
import { findInvitation, hasPowerOfOwner, requireOwner, requireTeam } from '../members/member-rules.js';
import { sentName } from '../views/member-query.js';
import { MembershipEntity } from '../model/membership.entity.js';
import { MembersService } from '../members/member.service.js';
import { TeamChanges } from '../changes/team-changes.js';
import { InvitationLinks } from '../links/invitation-links.js';

/** An invitation, of the membership `row` and its user `u`. */
const columns = `row.id, row.user_id, u.email, ${sentName('row', 'u')} AS name, row.role, ${instantJson('row.created_at')} AS created_at,
  (SELECT ${instantJson('max(l.expires_at)')} FROM one_time_link l
    WHERE l.team_id = row.team_id AND l.user_id = row.user_id AND l.used_at IS NULL AND l.expires_at > now()) AS expires_at`;

/** Invitations: memberships that were not accepted yet, and the links by which they are. */
@Injectable()
export class InvitationsService {
  private readonly logger = new Logger('Sessions');

  constructor(
    private readonly statements: Statements,
    private readonly writers: Writers,
    private readonly changes: TeamChanges,
    private readonly members: MembersService,
    private readonly sender: InvitationLinks,
    private readonly rpc: Rpc,
  ) {}

  /** All of them unless `limit` was sent. */
  async list({ team_id, ...asked }: ListInvitations, { caller }: CallContext): Promise<InvitationList> {
    requirePermission(caller, team_id, 'manageTeam');
    const window = windowIfLimited(asked);
    const { total, rows } = await readPage<Invitation>(this.statements, {
      from: `membership WHERE team_id = $1 AND status = 'invited' AND EXISTS (SELECT FROM team WHERE team.id = $1 AND deleted_at IS NULL)`,
      order: 'created_at, id',
      window: 'LIMIT $2 OFFSET $3',
      columns,
      joins: 'JOIN "user" u ON u.id = row.user_id',
      values: [team_id, window?.limit ?? null, window?.offset ?? 0],
    });
    if (total === 0) await requireTeam(this.statements, team_id);
    return allOrPage(rows, window, total);
  }

  async resend({ team_id, invitation_id }: InvitationPath, context: CallContext): Promise<SentInvitation> {
    requirePermission(context.caller, team_id, 'manageTeam');
    const send = async (manager: EntityManager): Promise<SentInvitation> => {
      const team = await this.changes.lockForGrowth(manager, team_id, context.caller);
      const caller = await requirePermissionNow(manager, context.caller, team_id, 'manageTeam');
      const membership = await findInvitation(manager, { team_id, invitation_id });
      // Whoever is shown the link can be the person who is invited.
      if (membership.role === 'team_owner') requireOwner(caller, team_id, 'make somebody team_owner');
      return this.sender.send(manager, {
        teamId: team_id,
        teamName: team.name,
        userId: membership.userId,
        issuedByOwner: hasPowerOfOwner(caller, team_id),
      });
    };
    return this.writers.once(team_id, context, send, { keep: (sent) => ({ ...sent, url: null }) });
  }

  /** Takes the membership back, with its key. */
  revoke(path: InvitationPath, context: CallContext): Promise<Nothing> {
    return this.members.revokeInvitation(path, context);
  }

  /** By the person, who is logged in. */
  async accept({ team_id }: TeamPath, context: CallContext): Promise<Nothing> {
    const caller = requireWholeUser(context.caller, 'accept an invitation');
    const { userId } = caller;
    await this.writers.once<Nothing>(team_id, context, async (manager) => {
      const team = await this.changes.lock(manager, team_id);
      await requireLiveCredential(manager, caller);
      if (await this.changes.acceptInvitation(manager, team, userId, context)) return {};
      const isMember = await manager.existsBy(MembershipEntity, { teamId: team_id, userId });
      throw isMember ? new AppError('conflict', 'You have already accepted this invitation.') : notFound('team');
    });
    this.rpc.publish(credentialsChanged, { user_id: userId });
    this.logger.log({ message: 'An invitation was accepted', user_id: userId, team_id, request_id: context.requestId });
    return {};
  }
}
