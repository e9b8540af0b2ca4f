import { instant } from '@atoll/database';
import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The self-signed certificate of a public host: the same for all replicas. */
@Entity('certificate')
export class CertificateEntity {
  @PrimaryColumn('text')
  publicHost!: string;

  @Column('text')
  certificate!: string;

  /** Sealed, for `certificatePurpose`. */
  @Column('text')
  sealedKey!: string;

  @Column(instant)
  expiresAt!: Date;
}

/** For libs/seal. */
export function certificatePurpose(publicHost: string): string {
  return `pods.certificate:${publicHost}`;
}
