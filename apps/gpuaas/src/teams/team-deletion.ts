import { teamDeletionAnswered, teamDeletionRequested, type TeamDeletionRequested } from '@atoll/contracts';
import { OnEvent, Outbox, type EventDelivery } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import { liveSubscription } from '../subscriptions/subscription.machine.js';

/** How long a team gets nothing new once it was told that it holds nothing: as long as a deletion that nobody concludes stays open. */
const closedMs = 60_000;

/** Says what a team that is to be deleted still holds of GPUs. */
@Injectable()
export class TeamDeletion {
  constructor(private readonly outbox: Outbox) {}

  @OnEvent(teamDeletionRequested, { consumer: 'team-deletion' })
  async onRequested({ team_id, attempt_id }: TeamDeletionRequested, { manager }: EventDelivery): Promise<void> {
    // Whoever is about to take something for the team commits first, or finds it closed.
    await manager.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 1))', [team_id]);
    const [{ held = 0 } = {}] = await manager.query<{ held: number }[]>(
      `SELECT count(*)::int AS held FROM subscription WHERE team_id = $1 AND ${liveSubscription}`,
      [team_id],
    );
    if (held === 0) {
      await manager.query(
        `INSERT INTO team_closing (team_id, until) VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond')
         ON CONFLICT (team_id) DO UPDATE SET until = excluded.until`,
        [team_id, closedMs],
      );
    }
    const holds = held === 0 ? null : `${held} GPU pool subscription${held === 1 ? '' : 's'}`;
    await this.outbox.add(manager, teamDeletionAnswered, { team_id, attempt_id, holder: 'gpuaas', holds });
  }
}
