import { setTimeout as delay } from 'node:timers/promises';
import { FairSemaphore } from '@atoll/waiting';
import { scenarioOf } from './scenario.js';
import type { WantedDoor } from './simulated-doors.js';
import { tables, type SimulatedStore } from './simulated-store.js';

/** Between two answers of a pod, through whichever of its doors: each is a line of its log. */
const paceMs = 10;
/** Statements at once, of all pods: whoever has the store has other things to do with its connections. */
const statementsAtOnce = 2;
const patienceMs = 30_000;

type Asked = Pick<WantedDoor, 'cluster' | 'podId' | 'port'>;

/**
 * What simulated pods answer behind their doors: each at its pace, and in turns with the others, however much is asked
 * of it.
 */
export class SimulatedAnswers {
  private readonly pods = new FairSemaphore({ permitsPerKey: 1, patienceMs });
  private readonly statements = new FairSemaphore({ permits: statementsAtOnce, patienceMs });

  constructor(private readonly store: SimulatedStore) {}

  /**
   * The name of the running pod, whose log gets a line for the request; null if none runs, or if it gets more requests
   * than it can answer.
   */
  async respond(asked: Asked, request: string): Promise<string | null> {
    const answer = Promise.withResolvers<string | null>();
    const respond = async (): Promise<void> => {
      answer.resolve(await this.statements.run(() => this.note(asked, request)));
      await delay(paceMs);
    };
    this.pods.run(respond, { key: keyOf(asked) }).catch(() => answer.resolve(null));
    return answer.promise;
  }

  /** The name of the pod if it echoes its input; null otherwise. */
  async echoes(asked: Asked): Promise<string | null> {
    const echoing = () => this.statements.run(() => this.echoing(asked));
    return this.pods.run(echoing, { key: keyOf(asked) }).catch(() => null);
  }

  /** Lines are for those who read along, and go after an hour. */
  private async note({ cluster, podId, port }: Asked, request: string): Promise<string | null> {
    const [run] = await this.store.query<{ name: string }>(
      `WITH running AS (
         SELECT run, name FROM ${tables.run} WHERE cluster = $1 AND kind = 'pod' AND id = $2 AND trouble IS NULL
           AND ready_at <= clock_timestamp() AND (ends_at IS NULL OR ends_at > clock_timestamp()) ORDER BY run DESC LIMIT 1
       ), forgotten AS (
         DELETE FROM ${tables.line} WHERE no IN (
           SELECT line.no FROM running JOIN ${tables.line} line ON line.cluster = $1 AND line.id = $2 AND line.run = running.run
             AND line.at < (SELECT clock_timestamp()) - interval '1 hour' ORDER BY line.at LIMIT 100)
       ), noted AS (
         INSERT INTO ${tables.line} (cluster, id, run, message) SELECT $1, $2, run, $3 FROM running
       )
       SELECT name FROM running`,
      [cluster, podId, `port ${port}: ${request}`],
    );
    return run?.name ?? null;
  }

  private async echoing({ cluster, podId }: Asked): Promise<string | null> {
    const [run] = await this.store.query<{ name: string; image: string }>(
      `SELECT name, spec->>'image' AS image FROM ${tables.run} WHERE cluster = $1 AND kind = 'pod' AND id = $2 AND trouble IS NULL
         AND ready_at <= clock_timestamp() AND (ends_at IS NULL OR ends_at > clock_timestamp()) ORDER BY run DESC LIMIT 1`,
      [cluster, podId],
    );
    return run && scenarioOf(run.name, run.image) === 'tcp-echo' ? run.name : null;
  }
}

const keyOf = ({ cluster, podId }: Asked): string => `${cluster} ${podId}`;
