import { setTimeout as delay } from 'node:timers/promises';
import { withPatience } from '@atoll/waiting';
import type { QueryRunner } from 'typeorm';

const partingMs = 5_000;

/**
 * Looks again and again who keeps a session waiting for locks. Started at once; `stop` waits for the look under way, 5
 * s at most.
 */
export class BlockerWatch {
  /**
   * The sessions that were in the way at the last look that saw some, `pg_dump (process 4711)`; empty where none did.
   */
  blockers = '';
  /** Why it looks no more: its connection is gone. */
  lost: Error | undefined;
  private readonly ending = new AbortController();
  private readonly watching: Promise<void>;

  /** `looker` is used by nobody else meanwhile. `onLook` hears how many looks in a row have seen the session wait. */
  constructor(
    private readonly looker: QueryRunner,
    private readonly pid: number,
    private readonly everyMs: number,
    private readonly onLook: (waits: number) => void,
  ) {
    this.watching = this.watch();
  }

  async stop(): Promise<void> {
    this.ending.abort();
    // A look that has no answer does not hold up a start whose migrations are done.
    await withPatience(this.watching, partingMs, undefined);
  }

  private async watch(): Promise<void> {
    const { signal } = this.ending;
    for (let waits = 0; !signal.aborted;) {
      await delay(this.everyMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        const blockers = await this.look();
        if (blockers) this.blockers = blockers;
        waits = blockers ? waits + 1 : 0;
      } catch (error) {
        this.lost = error as Error;
        return;
      }
      this.onLook(waits);
    }
  }

  private async look(): Promise<string> {
    const rows = (await this.looker.query(
      `SELECT DISTINCT pid, coalesce(nullif(application_name, ''), nullif(backend_type, 'client backend'), 'a session') AS name FROM unnest(pg_blocking_pids($1)) pid
       LEFT JOIN pg_stat_activity USING (pid) ORDER BY pid`,
      [this.pid],
    )) as { pid: number; name: string }[];
    return rows.map(({ pid, name }) => `${name} (process ${pid})`).join(', ');
  }
}
