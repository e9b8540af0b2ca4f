import { gpuServices, type GpuServiceOfRegion } from '@atoll/contracts/gpuaas';
import { Statements } from '@atoll/database';
import { isAppError } from '@atoll/errors';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';

const patienceMs = 4_000;

/** The GPU services of regions. What is not known is asked of gpuaas once, and kept. */
@Injectable()
export class GpuServices {
  constructor(
    private readonly statements: Statements,
    private readonly rpc: Rpc,
  ) {}

  /**
   * The GPU service in which something of a region is created; the oldest one of the region where none is named. Throws
   * `not_found` for an unknown region and for a GPU service of another region, `not_supported` for a region that has
   * none.
   */
  async find(regionId: string, gpuaasId: string | undefined, requestId: string): Promise<GpuServiceOfRegion> {
    const [known] = await this.statements.query<GpuServiceOfRegion>(
      `SELECT gpuaas_id, region_id, region_name FROM gpu_service WHERE region_id = $1 AND CASE WHEN $2::bigint IS NULL THEN is_default ELSE gpuaas_id = $2 END`,
      [regionId, gpuaasId ?? null],
    );
    if (known) return known;
    const asked = { region_id: regionId, ...(gpuaasId !== undefined && { gpuaas_id: gpuaasId }) };
    const context = systemContext('pods', { deadlineMs: patienceMs, requestId });
    const found = await this.rpc.call(gpuServices.find, asked, context);
    await this.statements.query(
      `INSERT INTO gpu_service (gpuaas_id, region_id, region_name, is_default) VALUES ($1, $2, $3, $4)
       ON CONFLICT (gpuaas_id) DO UPDATE SET is_default = gpu_service.is_default OR excluded.is_default`,
      [found.gpuaas_id, found.region_id, found.region_name, gpuaasId === undefined],
    );
    return found;
  }

  /** Throws `not_found` for an unknown region. A region without a GPU service is known too. */
  async requireRegion(regionId: string, requestId: string): Promise<void> {
    const known = await this.statements.query('SELECT FROM gpu_service WHERE region_id = $1 LIMIT 1', [regionId]);
    if (known.length > 0) return;
    try {
      await this.find(regionId, undefined, requestId);
    } catch (error) {
      if (!isAppError(error) || error.code !== 'not_supported') throw error;
    }
  }
}
