import { databaseNowMs } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { GpuaasSettings } from '../gpuaas-settings.js';
import { ClusterEntity } from '../model/cluster.entity.js';

/** The rows of clusters. Without settings a new GPU service gets the driver of `ATOLL_CLUSTER`. */
@Injectable()
export class ClusterRows {
  constructor(private readonly settings: GpuaasSettings) {}

  /**
   * The row; made if there is none. With `lock` until the transaction ends: against other changes, or only against them
   * with `share`.
   */
  async read(manager: EntityManager, gpuaasId: string, lock?: 'change' | 'share'): Promise<ClusterEntity> {
    const mode = lock && ({ change: 'pessimistic_write', share: 'pessimistic_read' } as const)[lock];
    const find = () => manager.findOne(ClusterEntity, { where: { gpuaasId }, ...(mode && { lock: { mode } }) });
    const known = await find();
    if (known) return known;
    await this.create(manager, gpuaasId);
    const made = await find();
    if (!made) throw new Error('The row of a cluster was not stored.');
    return made;
  }

  /** The same cluster, with the number of a look that begins now. */
  async beginLook(manager: EntityManager, cluster: ClusterEntity): Promise<ClusterEntity> {
    const [[begun]] = await manager.query<[{ looks: string }[], number]>(
      'UPDATE cluster SET looks = looks + 1 WHERE gpuaas_id = $1 RETURNING looks',
      [cluster.gpuaasId],
    );
    return { ...cluster, looks: begun?.looks ?? cluster.looks };
  }

  async create(manager: EntityManager, gpuaasId: string): Promise<void> {
    await manager
      .createQueryBuilder()
      .insert()
      .into(ClusterEntity)
      .values(this.fresh(gpuaasId, await databaseNowMs(manager)))
      .orIgnore()
      .execute();
  }

  private fresh(gpuaasId: string, nowMs: number): Omit<ClusterEntity, 'checks'> & { checks: [] } {
    const { cluster: driver, dockerPublicHost, doorImage, simulatedHost, sockets } = this.settings;
    const isDocker = driver === 'docker';
    return {
      gpuaasId,
      driver,
      publicHost: isDocker ? dockerPublicHost : simulatedHost,
      socket: isDocker ? (sockets[0] ?? null) : null,
      url: null,
      doorImage: isDocker ? doorImage : null,
      sealedTls: null,
      setting: '1',
      revision: '1',
      identity: null,
      status: isDocker ? 'unreachable' : 'ok',
      since: null,
      checks: [],
      nextCheckAt: new Date(nowMs),
      hasMissed: false,
      looks: '0',
      latestLook: '0',
    };
  }
}
