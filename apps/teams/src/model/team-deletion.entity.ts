import type { TeamHolding } from '@atoll/contracts/teams';
import { Column, Entity, PrimaryColumn } from 'typeorm';

/** What one service said when it was asked whether it still holds anything of a team that is to be deleted. */
@Entity('deletion_answer')
export class DeletionAnswerEntity {
  @PrimaryColumn('uuid')
  attemptId!: string;

  @PrimaryColumn('text')
  holder!: string;

  /** What it holds, in words for the caller; null for nothing. */
  @Column('text', { nullable: true })
  holds!: string | null;

  /** The same by kind. */
  @Column('json', { default: [] })
  remaining!: TeamHolding[];
}
