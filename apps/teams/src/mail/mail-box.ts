import { newId } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TeamsSettings } from '../teams-settings.js';
import { MailEntity, type MailData, type MailKind } from '../model/mail.entity.js';

interface NewMail {
  kind: MailKind;
  address: string;
  data?: MailData;
  linkId?: string;
}

/** What happened to an account, in words for its user. */
export type Notice = 'new_device' | 'password_changed' | 'session_stolen' | 'factor_added' | 'factor_removed';

/** Takes mail within the transaction of its cause; it is sent after the commit, at least once. Nothing without a mail server. */
@Injectable()
export class MailBox {
  /** Whether there is a mail server. */
  readonly isOpen: boolean;

  constructor({ smtpUrl }: TeamsSettings) {
    this.isOpen = smtpUrl !== undefined;
  }

  async add(manager: EntityManager, { kind, address, data = {}, linkId }: NewMail): Promise<void> {
    if (!this.isOpen) return;
    const id = newId();
    await manager.insert(MailEntity, { id, kind, address, data, ...(linkId !== undefined && { linkId }) });
  }

  /** Tells the user, at an address that is proven to be theirs. */
  async notify(manager: EntityManager, userId: string, notice: Notice, where: { address?: string; device?: string } = {}): Promise<void> {
    if (!this.isOpen) return;
    const [user] = await manager.query<{ email: string }[]>('SELECT email FROM "user" WHERE id = $1 AND verified_at IS NOT NULL', [userId]);
    if (!user) return;
    const data = { event: notice, at: new Date().toISOString(), ...where };
    await this.add(manager, { kind: 'notice', address: user.email, data });
  }
}
