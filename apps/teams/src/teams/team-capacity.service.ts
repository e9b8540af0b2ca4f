import { teamCapacityChanged, type TeamCapacityChanged } from '@atoll/contracts/gpuaas';
import { OnEvent, type EventDelivery } from '@atoll/events';
import { Injectable } from '@nestjs/common';

/**
 * Keeps what the gpuaas service tells of each team: for `has_pool_subscription` of a Team and `card_count` of a User.
 */
@Injectable()
export class TeamCapacityService {
  @OnEvent(teamCapacityChanged, { consumer: 'team-capacity' })
  async onChanged(
    { team_id, gpu_ids, has_pool_subscription, revision }: TeamCapacityChanged,
    { manager }: EventDelivery,
  ): Promise<void> {
    await manager.query(
      `INSERT INTO team_capacity (team_id, gpu_ids, has_pool_subscription, revision) VALUES ($1, $2, $3, $4)
       ON CONFLICT (team_id) DO UPDATE
         SET gpu_ids = excluded.gpu_ids, has_pool_subscription = excluded.has_pool_subscription, revision = excluded.revision
         WHERE team_capacity.revision < excluded.revision`,
      [team_id, gpu_ids, has_pool_subscription, revision],
    );
  }
}
