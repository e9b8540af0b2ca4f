import { gpuUsageTold, podUsageTold, type UsageTold } from '@atoll/contracts/billing';
import { regionAdded, type RegionAdded } from '@atoll/contracts/gpuaas';
import { OnEvent, type EventDelivery } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import { UsageService } from './usage.service.js';

/** Facts with which the platform's own services report what teams hold. */
@Injectable()
export class UsageOfServices {
  constructor(private readonly usage: UsageService) {}

  @OnEvent(gpuUsageTold, { consumer: 'usage' })
  async onGpuUsage(told: UsageTold, { manager }: EventDelivery): Promise<void> {
    await this.usage.take(manager, 'atoll-gpuaas', told);
  }

  @OnEvent(podUsageTold, { consumer: 'usage' })
  async onPodUsage(told: UsageTold, { manager }: EventDelivery): Promise<void> {
    await this.usage.take(manager, 'atoll-pods', told);
  }

  @OnEvent(regionAdded, { consumer: 'usage' })
  async onRegionAdded({ region_id, region_name }: RegionAdded, { manager }: EventDelivery): Promise<void> {
    await manager.query(
      `INSERT INTO region (region_id, name) VALUES ($1, $2) ON CONFLICT (region_id) DO UPDATE SET name = excluded.name`,
      [region_id, region_name],
    );
  }
}
