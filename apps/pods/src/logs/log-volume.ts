import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { PodsSettings } from '../pods-settings.js';

const noticeMs = 3_600_000;

/**
 * What the pods of each team have written today (UTC). A team that has used up its share writes nothing more until the
 * next day, so that no team fills the store. Replicas add up what they have counted from time to time: a team gets a
 * little more than its share.
 */
@Injectable()
export class LogVolume {
  /** Bytes that are not yet in the database, by team. */
  private counted = new Map<string, number>();
  private usedUp: ReadonlySet<string> = new Set();
  private readonly noticeAtMs = new Map<string, number>();

  constructor(
    private readonly statements: Statements,
    private readonly settings: PodsSettings,
  ) {}

  count(teamId: string, bytes: number): void {
    this.counted.set(teamId, (this.counted.get(teamId) ?? 0) + bytes);
  }

  isUsedUp(teamId: string): boolean {
    return this.usedUp.has(teamId);
  }

  /** A sentence for the log of a pod whose lines are dropped, once an hour. */
  notice(podId: string): string | undefined {
    const nowMs = performance.now();
    if ((this.noticeAtMs.get(podId) ?? 0) > nowMs) return undefined;
    this.noticeAtMs.set(podId, nowMs + noticeMs);
    return `Lines are dropped until midnight UTC: the pods of a team may write ${this.settings.logTeamMibPerDay} MiB a day.`;
  }

  /** Adds up with other replicas. */
  async flush(): Promise<void> {
    const counted = [...this.counted].sort(([one], [other]) => (one < other ? -1 : 1));
    this.counted = new Map();
    try {
      await this.add(counted);
    } catch (error) {
      for (const [teamId, bytes] of counted) this.count(teamId, bytes);
      throw error;
    }
  }

  private async add(counted: readonly [teamId: string, bytes: number][]): Promise<void> {
    const rows = await this.statements.query<{ team_id: string }>(
      `WITH old AS (DELETE FROM log_volume WHERE day < (now() AT TIME ZONE 'UTC')::date - 1),
       added AS (
         INSERT INTO log_volume AS volume (team_id, day, bytes)
         SELECT team_id, (now() AT TIME ZONE 'UTC')::date, bytes FROM unnest($1::uuid[], $2::bigint[]) AS counted (team_id, bytes)
         ON CONFLICT (team_id, day) DO UPDATE SET bytes = volume.bytes + excluded.bytes RETURNING team_id, bytes
       )
       SELECT team_id FROM added WHERE bytes >= $3 UNION
       SELECT team_id FROM log_volume WHERE day = (now() AT TIME ZONE 'UTC')::date AND bytes >= $3`,
      [
        counted.map(([teamId]) => teamId),
        counted.map(([, bytes]) => bytes),
        this.settings.logTeamMibPerDay * 1024 * 1024,
      ],
    );
    this.usedUp = new Set(rows.map(({ team_id }) => team_id));
    if (this.noticeAtMs.size > 10_000) this.noticeAtMs.clear();
  }
}
