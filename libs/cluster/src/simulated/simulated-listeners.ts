import { randomUUID } from 'node:crypto';
import { Rounds, ThrottledLog } from '@atoll/waiting';
import { contextFor, listenTcp, listenUdp, type Behind, type Listener } from './pod-server.js';
import { scenarioOf } from './scenario.js';
import { SimulatedAnswers } from './simulated-answers.js';
import { portTaken, tlsPurpose, type SecretKeeper, type WantedDoor } from './simulated-doors.js';
import { tables, type SimulatedStore } from './simulated-store.js';

/** A process that has not renewed its claim for so long is gone, and another listens. */
const claimMs = 3_000;
/** Between two looks by itself: what this process does to doors wakes it. */
const everyMs = claimMs / 3;
/** Between two looks at all doors: for those whose rows are gone, whatever has deleted them. */
const allEveryMs = 30_000;
/** What has changed within so long is looked at again, for new certificates: longer than a claim lasts. */
const recentMs = 2 * claimMs;
/** Doors that are opened or closed at once: whoever has the store has other things to do with its connections. */
const atOnce = 4;
/**
 * A process that is frozen keeps its ports. So long after its claim was taken over, a port that is in use is most
 * likely its own: doors wait for it, and none is given up or gets another port.
 */
const frozenMs = 60_000;
/** Until it is tried again where the database is away. */
const retryMs = 250;

interface Row extends WantedDoor {
  readonly isClosing: boolean;
  readonly openedBy: string | null;
}

interface Open {
  readonly listener: Listener;
  sealedTls: string | null;
}

/** The listeners of all simulated doors: in one process at a time, which has claimed them in the database. */
export class SimulatedListeners {
  private readonly holder = randomUUID();
  private readonly open = new Map<string, Open>();
  private readonly rounds = new Rounds(() => this.look());
  private readonly answers: SimulatedAnswers;
  private renewedMs = 0;
  /** When it took the claim from a process that had not given it up; by `performance.now()`. */
  private takenOverMs = -Infinity;
  /** When it looked last, and last at all doors. */
  private lookedMs = 0;
  private lookedAtAllMs = 0;
  /** By the errors of listeners: each door is tried again and again. */
  private readonly faults: ThrottledLog;

  constructor(
    private readonly store: SimulatedStore,
    private readonly host: string,
    private readonly secrets: SecretKeeper,
    private readonly ready: () => Promise<void>,
    private readonly changed: () => void,
    warn: (sentence: string) => void,
  ) {
    this.faults = new ThrottledLog(({ message }) => warn(message));
    this.answers = new SimulatedAnswers(store);
  }

  start(): void {
    this.rounds.start();
  }

  /** Something may have changed. */
  wake(): void {
    this.rounds.wake();
  }

  /** Closes all listeners and gives the claim to whoever comes. */
  async stop(): Promise<void> {
    await this.rounds.stop();
    await this.closeAll();
    await this.store.query(`DELETE FROM ${tables.claim} WHERE holder = $1`, [this.holder]).catch(() => undefined);
  }

  /** Returns the milliseconds until the next look. */
  private async look(): Promise<number> {
    try {
      await this.ready();
      const othersMs = await this.claim();
      if (othersMs !== null) {
        await this.closeAll();
        return Math.min(everyMs, othersMs);
      }
      await this.bringAll();
      return everyMs;
    } catch {
      // The database is away: connections go on until another process may have taken over.
      if (Date.now() - this.renewedMs > claimMs) await this.closeAll();
      return retryMs;
    }
  }

  /**
   * Opens and closes doors. Reads only those that may differ from what this process has, unless it has not looked for
   * as long as its claim lasts, or at all of them for long.
   */
  private async bringAll(): Promise<void> {
    const beganMs = Date.now();
    const isOfAll = beganMs - this.lookedMs > claimMs || beganMs - this.lookedAtAllMs > allEveryMs;
    const rows = await this.store.query<Row>(
      `SELECT cluster, id, run, pod_id AS "podId", transport, port, external_port AS "externalPort", sealed_tls AS "sealedTls",
         is_closing AS "isClosing", opened_by AS "openedBy" FROM ${tables.door}
       WHERE $1::boolean OR is_closing OR opened_by IS DISTINCT FROM $2 OR changed_at > clock_timestamp() - $3 * interval '1 millisecond'`,
      [isOfAll, this.holder, recentMs],
    );
    const left = rows.toReversed();
    const bringSome = async (): Promise<void> => {
      try {
        for (let row = left.pop(); row; row = left.pop()) await this.bring(row);
      } catch (error) {
        left.length = 0;
        throw error;
      }
    };
    // What is under way ends before the next look, which would listen on the same ports again, and find them taken.
    const ends = await Promise.allSettled(Array.from({ length: atOnce }, bringSome));
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
    this.lookedMs = beganMs;
    if (!isOfAll) return;
    const wanted = new Set(rows.filter(({ isClosing }) => !isClosing).map(keyOf));
    for (const key of this.open.keys()) if (!wanted.has(key)) await this.close(key);
    this.lookedAtAllMs = beganMs;
  }

  /** Takes or renews the claim. Returns null, or the milliseconds for which another process has it yet. */
  private async claim(): Promise<number | null> {
    const before = Date.now();
    const [claimed] = await this.store.query<{ former: string | null }>(
      `WITH former AS MATERIALIZED (SELECT holder FROM ${tables.claim} WHERE name = 'listeners')
       INSERT INTO ${tables.claim} (name, holder, until) VALUES ('listeners', $1, clock_timestamp() + $2 * interval '1 millisecond')
       ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
         WHERE claim.holder = excluded.holder OR claim.until < clock_timestamp() RETURNING (SELECT holder FROM former) AS former`,
      [this.holder, claimMs],
    );
    if (claimed) {
      this.renewedMs = before;
      if (claimed.former !== null && claimed.former !== this.holder) this.takenOverMs = performance.now();
      return null;
    }
    const [claim] = await this.store.query<{ left_ms: number }>(
      `SELECT GREATEST(ceil(extract(epoch FROM until - clock_timestamp()) * 1000), 0)::float8 + 1 AS left_ms FROM ${tables.claim} WHERE name = 'listeners'`,
    );
    return claim?.left_ms ?? 0;
  }

  private async bring(row: Row): Promise<void> {
    const key = keyOf(row);
    if (row.isClosing) {
      await this.close(key);
      await this.store.query(`DELETE FROM ${tables.door} WHERE cluster = $1 AND id = $2 AND run = $3 AND is_closing`, [
        row.cluster,
        row.id,
        row.run,
      ]);
      return;
    }
    const known = this.open.get(key);
    if (known) {
      if (known.sealedTls !== row.sealedTls) known.listener.renew(contextFor(this.tlsOf(row)));
      known.sealedTls = row.sealedTls;
      if (row.openedBy !== this.holder) await this.note(row, this.holder, null);
      return;
    }
    const [pod] = await this.store.query<{ name: string }>(
      `SELECT name FROM ${tables.run} WHERE cluster = $1 AND id = $2 LIMIT 1`,
      [row.cluster, row.podId],
    );
    let listener: Listener;
    try {
      listener = await this.listen(row, pod?.name ?? '');
    } catch (error) {
      const { code = 'failed', message } = error as NodeJS.ErrnoException;
      if (code === portTaken && performance.now() - this.takenOverMs < frozenMs) return;
      const sentence = `Cannot listen on ${this.host} for exposed services; they wait: ${message}`;
      if (code !== portTaken) this.faults.log(code, { message: sentence });
      await this.note(row, null, code);
      return;
    }
    this.open.set(key, { listener, sealedTls: row.sealedTls });
    this.faults.forget();
    // It may have been removed before anybody knew that it is open.
    if (!(await this.note(row, this.holder, null))) await this.close(key);
  }

  private async listen(row: Row, podName: string): Promise<Listener> {
    const { transport, externalPort } = row;
    if (scenarioOf(podName, '') === 'port-taken') throw Object.assign(new Error('taken'), { code: 'EADDRINUSE' });
    const behind: Behind = {
      respond: (request) => this.answers.respond(row, request),
      echoes: () => this.answers.echoes(row),
    };
    if (transport === 'udp') return listenUdp(this.host, externalPort, behind);
    return listenTcp(this.host, externalPort, contextFor(this.tlsOf(row)), behind);
  }

  private tlsOf({ sealedTls, ...door }: Row): { certificate: string; key: string } | null {
    if (sealedTls === null) return null;
    return JSON.parse(this.secrets.open(sealedTls, tlsPurpose(door)).toString('utf8')) as {
      certificate: string;
      key: string;
    };
  }

  /** Returns whether an open door is wanted at all. */
  private async note({ cluster, id, run }: Row, openedBy: string | null, trouble: string | null): Promise<boolean> {
    const noted = await this.store.query(
      `UPDATE ${tables.door} SET opened_by = $4, trouble = $5, changed_at = clock_timestamp() WHERE cluster = $1 AND id = $2 AND run = $3
         AND ($4::uuid IS NOT NULL OR opened_by IS NOT NULL OR trouble IS DISTINCT FROM $5) RETURNING id`,
      [cluster, id, run, openedBy, trouble],
    );
    if (noted.length > 0) this.changed();
    return noted.length > 0;
  }

  private async close(key: string): Promise<void> {
    const known = this.open.get(key);
    this.open.delete(key);
    await known?.listener.close();
  }

  private async closeAll(): Promise<void> {
    this.lookedMs = 0;
    await Promise.all([...this.open.keys()].map((key) => this.close(key)));
  }
}

function keyOf({ cluster, id, run }: WantedDoor): string {
  return `${cluster} ${id} ${run}`;
}
