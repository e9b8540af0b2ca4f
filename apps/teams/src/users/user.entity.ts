import { Column, Entity, PrimaryColumn, Unique } from 'typeorm';

@Entity('user')
@Unique(['email'])
export class UserEntity {
  @PrimaryColumn('uuid')
  id!: string;

  /** In lower case: one address is one user, however it is written. */
  @Column('text')
  email!: string;

  @Column('text')
  name!: string;

  @Column('text', { default: 'UTC' })
  timezone!: string;

  @Column('boolean', { default: false })
  platformAdmin!: boolean;

  @Column({ type: 'timestamptz', precision: 3, default: () => 'now()' })
  createdAt!: Date;
}
