import { baremetalChanged, type BaremetalChanged } from '@atoll/contracts/gpuaas';
import { OnEvent, type EventDelivery } from '@atoll/events';
import { Injectable } from '@nestjs/common';

/** The projection of bare-metal instances. */
@Injectable()
export class BaremetalInstances {
  @OnEvent(baremetalChanged, { consumer: 'baremetal-instances' })
  async onChanged(changed: BaremetalChanged, { manager }: EventDelivery): Promise<void> {
    const { instance_id, revision, team_id, workspace_id, region_id, name, status, created_at } = changed;
    await manager.query(
      `INSERT INTO baremetal_instance (instance_id, revision, team_id, workspace_id, region_id, name, status, created_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
       ON CONFLICT (instance_id) DO UPDATE
       SET revision = excluded.revision, workspace_id = excluded.workspace_id, region_id = excluded.region_id, name = excluded.name, status = excluded.status
       WHERE baremetal_instance.revision < excluded.revision`,
      [instance_id, revision, team_id, workspace_id, region_id, name, status, created_at],
    );
  }
}
