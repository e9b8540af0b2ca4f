import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * The reply to a call that was made under an `Idempotency-Key`, kept so that the same call again is answered and not
 * done again.
 */
@Entity()
export class IdempotencyKey {
  /** SHA-256 of scope and key: of one length, however long those are. */
  @PrimaryColumn('bytea')
  id!: Buffer;

  @Column('text')
  fingerprint!: string;

  /** Secrets masked. `json` and not `jsonb`, which would change the order of the fields and refuse U+0000. */
  @Column('json')
  reply!: object;

  @Index()
  @Column('timestamptz')
  expiresAt!: Date;
}
