import { notFound } from '@atoll/contracts';
import type { SentInvitation, TeamMember } from '@atoll/contracts/teams';
import { Injectable } from '@nestjs/common';
import { In, type EntityManager } from 'typeorm';
import { LinkTokens } from '../tokens/link-tokens.js';
import { MailBox } from '../mail/mail-box.js';
import { UserEntity } from '../model/user.entity.js';

interface Invited {
  teamId: string;
  teamName: string;
  /** Whether a team_owner or the operator sends it. */
  issuedByOwner: boolean;
}

/** Sends the link of an invitation: by mail, or in the answer to whoever invites. */
@Injectable()
export class InvitationLinks {
  constructor(
    private readonly links: LinkTokens,
    private readonly mail: MailBox,
  ) {}

  /** Within a transaction: the members as they are answered, those who are invited with their invitation. */
  async sendAll(
    manager: EntityManager,
    team: { id: string; name: string },
    members: readonly TeamMember[],
    { issuedByOwner }: Pick<Invited, 'issuedByOwner'>,
  ): Promise<TeamMember[]> {
    const userIds = members.filter(({ status }) => status === 'invited').map((member) => member.user_id);
    const sent = await this.sendTo(manager, { teamId: team.id, teamName: team.name, userIds, issuedByOwner });
    return members.map((member) => {
      const invitation = sent.get(member.user_id);
      return invitation ? { ...member, invitation } : member;
    });
  }

  /** Within a transaction. A link that goes by mail proves the address; one that is shown proves nothing. */
  async send(manager: EntityManager, { userId, ...invited }: Invited & { userId: string }): Promise<SentInvitation> {
    const sent = (await this.sendTo(manager, { ...invited, userIds: [userId] })).get(userId);
    if (!sent) throw notFound('user');
    return sent;
  }

  /** The invitations by user, in a few statements for all of them. */
  private async sendTo(
    manager: EntityManager,
    { teamId, teamName, userIds, issuedByOwner }: Invited & { userIds: readonly string[] },
  ): Promise<Map<string, SentInvitation>> {
    if (userIds.length === 0) return new Map();
    const users = await manager.findBy(UserEntity, { id: In(userIds) });
    const isProof = this.mail.isOpen;
    const people = users.map(({ id: userId, email }) => ({ userId, email }));
    const links = await this.links.invite(manager, people, { teamId, isProof, issuedByOwner });
    const letter = { kind: 'invitation', teamId, data: { team_name: teamName } } as const;
    await this.mail.addAll(
      manager,
      links.map(({ id, email }) => ({ ...letter, address: email, linkId: id })),
    );
    return new Map(links.map(({ userId, url, expires_at }) => [userId, { url: isProof ? null : url, expires_at }]));
  }
}
