import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';

@Entity('image_policy')
@Index(['createdAt', 'id'])
export class ImagePolicyEntity {
  @PrimaryColumn('uuid')
  id!: string;

  @Column('text')
  name!: string;

  @Column('text')
  description!: string;

  /** The one policy that allows every image: made by the first migration. */
  @Index({ unique: true, where: 'is_default' })
  @Column('boolean', { default: false })
  isDefault!: boolean;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}

@Entity('image_object')
@Index(['policyId', 'id'])
export class ImageObjectEntity {
  @PrimaryColumn('uuid')
  id!: string;

  @ForeignKey(() => ImagePolicyEntity, { onDelete: 'CASCADE' })
  @Column('uuid')
  policyId!: string;

  @Column('text')
  name!: string;

  /** As it was written. */
  @Column('text')
  reference!: string;
}
