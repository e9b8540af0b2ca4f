import { instant } from '@atoll/database';
import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** Who has read the password of an instance. Never changed, and removed after `ATOLL_HISTORY_RETENTION`. */
@Entity('baremetal_credential_read')
export class CredentialReadEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id!: string;

  @Column('uuid')
  instanceId!: string;

  /** `user:<id>` or `system:<service>`. */
  @Column('text')
  actor!: string;

  @Column('text')
  requestId!: string;

  @Column(instant)
  at!: Date;
}
