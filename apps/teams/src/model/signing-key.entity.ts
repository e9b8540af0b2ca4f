import { instant } from '@atoll/database';
import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A key pair of Ed25519 by which access tokens are signed. */
@Entity('signing_key')
export class SigningKeyEntity {
  @PrimaryColumn('text')
  kid!: string;

  /** The private key (PKCS #8), sealed for `signingKeyPurpose`. */
  @Column('text')
  sealed!: string;

  /** The public key, as RFC 8037 writes it. */
  @Column('text')
  x!: string;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}

/** For libs/seal. */
export function signingKeyPurpose(kid: string): string {
  return `teams.signing_key:${kid}`;
}
