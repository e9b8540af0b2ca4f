import { vmChanged, type VmChanged } from '@atoll/contracts/pods';
import { OnEvent, type EventDelivery } from '@atoll/events';
import { Injectable } from '@nestjs/common';

/** The projection of VMs. */
@Injectable()
export class VmInstances {
  @OnEvent(vmChanged, { consumer: 'vm-instances' })
  async onChanged(
    { instance_id, revision, team_id, name, is_running, created_at }: VmChanged,
    { manager }: EventDelivery,
  ): Promise<void> {
    await manager.query(
      `INSERT INTO vm_instance (instance_id, revision, team_id, name, is_running, created_at) VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (instance_id) DO UPDATE SET revision = excluded.revision, name = excluded.name, is_running = excluded.is_running
       WHERE vm_instance.revision < excluded.revision`,
      [instance_id, revision, team_id, name, is_running, created_at],
    );
  }
}
