import { notFound } from '@atoll/contracts';
import type { SentInvitation, TeamMember } from '@atoll/contracts/teams';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { LinkTokens } from '../tokens/link-tokens.js';
import { MailBox } from '../mail/mail-box.js';
import { UserEntity } from '../model/user.entity.js';

interface Invited {
  teamId: string;
  teamName: string;
  userId: string;
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
    const sent: TeamMember[] = [];
    for (const member of members) {
      const invited = { teamId: team.id, teamName: team.name, userId: member.user_id, issuedByOwner };
      sent.push(member.status === 'invited' ? { ...member, invitation: await this.send(manager, invited) } : member);
    }
    return sent;
  }

  /** Within a transaction. A link that goes by mail proves the address; one that is shown proves nothing. */
  async send(manager: EntityManager, { teamId, teamName, userId, issuedByOwner }: Invited): Promise<SentInvitation> {
    const user = await manager.findOneBy(UserEntity, { id: userId });
    if (!user) throw notFound('user');
    const isProof = this.mail.isOpen;
    const { id, url, expires_at } = await this.links.issue(manager, {
      userId,
      email: user.email,
      teamId,
      isProof,
      issuedByOwner,
    });
    await this.mail.add(manager, {
      kind: 'invitation',
      teamId,
      address: user.email,
      data: { team_name: teamName },
      linkId: id,
    });
    return { url: isProof ? null : url, expires_at };
  }
}
