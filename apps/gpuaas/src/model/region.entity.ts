import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, PrimaryGeneratedColumn, Unique } from 'typeorm';

@Entity('region')
@Unique(['regionName'])
export class RegionEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  regionId!: string;

  @Column('text')
  regionName!: string;

  @Column('text', { nullable: true })
  city!: string | null;

  @Column('text', { nullable: true })
  country!: string | null;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}

/** One region's GPU service. */
@Entity('gpuaas')
@Unique(['regionId', 'name'])
export class GpuaasEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  gpuaasId!: string;

  @ForeignKey(() => RegionEntity)
  @Column('bigint')
  regionId!: string;

  @Column('text')
  name!: string;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}
