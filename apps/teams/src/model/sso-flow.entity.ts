import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A log-in that is under way at a provider. State, nonce and PKCE verifier follow from its id. */
@Entity('sso_flow')
@Index(['expiresAt'])
export class SsoFlowEntity {
  @PrimaryColumn('uuid')
  id!: string;

  @Column('text')
  provider!: string;

  @Column(instant)
  expiresAt!: Date;
}
