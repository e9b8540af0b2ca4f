import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A call that has changed something. A copy of it changes nothing any more, whichever replica it reaches. */
@Entity()
export class CallNonce {
  /** The signature of the request: 32 bytes that no other request has. */
  @PrimaryColumn('bytea')
  nonce!: Buffer;

  /**
   * When every replica refuses a copy by its deadline. Without an index, since the table stays small and each writing
   * call would pay for it.
   */
  @Column('timestamptz')
  expiresAt!: Date;
}
