import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A GPU service as gpuaas has described it. It never changes and is never deleted, so no event updates it. */
@Entity('gpu_service')
export class GpuServiceEntity {
  @PrimaryColumn('bigint')
  gpuaasId!: string;

  @Column('bigint')
  regionId!: string;

  @Column('text')
  regionName!: string;

  /** The oldest one of its region: where a request that names none is placed. */
  @Column('boolean', { default: false })
  isDefault!: boolean;
}
