import { instant, nilId } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

export type MailKind = 'invitation' | 'reset' | 'notice';

/** What the text of a mail is made of. Never a token: that follows from the link's id when the mail is sent. */
export interface MailData {
  /** Of an invitation. */
  team_name?: string;
  /** Of a notice: what happened. */
  event?: string;
  address?: string;
  at?: string;
}

/** In the place of a team, of mail that none sends. */
export const noTeam = nilId;

/** Mail that is to be sent; gone when a mail server has taken it. */
@Entity('mail')
@Index(['kind', 'dueAt'])
@Index(['teamId', 'dueAt'], { where: "kind = 'invitation'" })
export class MailEntity {
  /** Also its Message-ID, so that a copy of it shows as one mail. */
  @PrimaryColumn('uuid')
  id!: string;

  @Column('text')
  kind!: MailKind;

  /** That invites. */
  @Column('uuid', { default: noTeam })
  teamId!: string;

  @Column('text')
  address!: string;

  @Column('jsonb')
  data!: MailData;

  @Column('uuid', { nullable: true })
  linkId!: string | null;

  @Column('integer', { default: 0 })
  tries!: number;

  @Column({ ...instant, default: () => 'now()' })
  dueAt!: Date;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}
