import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The self-signed certificate of a public host: the same for all replicas. */
@Entity('certificate')
export class CertificateEntity {
  @PrimaryColumn('text')
  publicHost!: string;

  @Column('text')
  certificate!: string;

  /** Sealed, for `pods.certificate:<public_host>`. */
  @Column('text')
  sealedKey!: string;

  @Column({ type: 'timestamp with time zone', precision: 3 })
  expiresAt!: Date;
}
