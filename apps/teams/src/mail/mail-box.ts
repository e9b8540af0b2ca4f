import { newId } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TeamsSettings } from '../teams-settings.js';
import { MailEntity, noTeam, type MailData, type MailKind } from '../model/mail.entity.js';

interface NewMail {
  kind: MailKind;
  /** That invites. */
  teamId?: string;
  address: string;
  data?: MailData;
  linkId?: string;
}

/** What happened to an account, in words for its user. */
export type Notice =
  | 'new_device'
  | 'log_ins_slowed'
  | 'password_changed'
  | 'session_stolen'
  | 'factor_added'
  | 'factor_removed';

/**
 * Takes mail within the transaction of its cause; it is sent after the commit, at least once. Nothing without a mail
 * server.
 */
@Injectable()
export class MailBox {
  /** Whether there is a mail server. */
  readonly isOpen: boolean;

  constructor({ smtpUrl }: TeamsSettings) {
    this.isOpen = smtpUrl !== undefined;
  }

  async add(manager: EntityManager, mail: NewMail): Promise<void> {
    await this.addAll(manager, [mail]);
  }

  async addAll(manager: EntityManager, mails: readonly NewMail[]): Promise<void> {
    if (!this.isOpen || mails.length === 0) return;
    await manager.insert(
      MailEntity,
      mails.map(({ linkId = null, teamId = noTeam, data = {}, ...mail }) => ({
        id: newId(),
        ...mail,
        linkId,
        teamId,
        data,
      })),
    );
  }

  /**
   * Sends a mail to the user's verified address; sends none without one. Runs one statement in either case. `address`:
   * where what happened came from. What a client says of itself is in no mail: anybody could write to the user by it.
   */
  async notify(manager: EntityManager, userId: string | null, notice: Notice, address?: string): Promise<void> {
    if (!this.isOpen) return;
    const data = JSON.stringify({ event: notice, at: new Date().toISOString(), address });
    await manager.query(
      `INSERT INTO mail (id, kind, address, data) SELECT $1, 'notice', email, $2 FROM "user" WHERE id = $3 AND verified_at IS NOT NULL`,
      [newId(), data, userId],
    );
  }
}
