import type { QueueTime } from '@atoll/database';

/** How long a lane counts as hanging after one of its steps timed out. */
const hangingMs = 60_000;

/** Steps of a worker that wait for a connection when it begins no more. */
const mostWaiting = 64;

/** How many steps may begin, in total and per lane. */
export interface LaneLoads {
  /** Steps that may begin in lanes that already have one. The first step of a lane is not limited by it. */
  readonly spare: number;
  /** Steps that may begin in each lane that `loads` does not name. */
  readonly room: number;
  /** Lane → [running steps, steps that may begin], for lanes with running steps and lanes that hang. */
  readonly loads: Readonly<Record<string, readonly [underWay: number, room: number]>>;
}

export interface LaneLimits {
  /** Steps that run at once, in all lanes together. */
  readonly concurrency: number;
  /** Steps that run at once in one lane. */
  readonly laneConcurrency: number;
}

/**
 * Counts the running steps of one machine in this process by lane, and remembers which lanes hang. A lane that hangs
 * gets one step at a time. One half of all steps is reserved for the first step of each lane, so that lanes that have
 * just begun to hang cannot take all steps. Nothing waits here: what waits are rows, which claims take in turn.
 */
export class Lanes {
  private readonly underWay = new Map<string, number>();
  private readonly hangingSinceMs = new Map<string, number>();
  private total = 0;

  /** Of each step that runs, and of each result that is written, its wait for connections to the database. */
  readonly queues = new Set<Pick<QueueTime, 'isWaiting'>>();

  constructor(
    private readonly limits: LaneLimits,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /**
   * Steps that may begin, in all lanes together. While many wait for a connection, more of them would only make all of
   * them wait until they are cut off.
   */
  get free(): number {
    const waiting = [...this.queues].filter(({ isWaiting }) => isWaiting).length;
    return Math.max(0, Math.min(this.limits.concurrency - this.total, mostWaiting - waiting));
  }

  begin(lane: string): void {
    this.total += 1;
    this.underWay.set(lane, (this.underWay.get(lane) ?? 0) + 1);
  }

  end(lane: string): void {
    this.total -= 1;
    const left = (this.underWay.get(lane) ?? 0) - 1;
    if (left > 0) this.underWay.set(lane, left);
    else this.underWay.delete(lane);
  }

  /** A step of the lane has timed out. */
  hung(lane: string): void {
    this.hangingSinceMs.set(lane, this.nowMs());
  }

  answered(lane: string): void {
    this.hangingSinceMs.delete(lane);
  }

  /** Lanes in which a step has timed out within the last minute and no step has ended by itself since. */
  get hanging(): string[] {
    for (const [lane, sinceMs] of this.hangingSinceMs)
      if (this.nowMs() - sinceMs > hangingMs) this.hangingSinceMs.delete(lane);
    return [...this.hangingSinceMs.keys()];
  }

  loads(): LaneLoads {
    const { concurrency, laneConcurrency } = this.limits;
    const hanging = new Set(this.hanging);
    const lanes = new Set([...this.underWay.keys(), ...hanging]);
    const loads = [...lanes].map((lane) => {
      const underWay = this.underWay.get(lane) ?? 0;
      return [lane, [underWay, Math.max(0, (hanging.has(lane) ? 1 : laneConcurrency) - underWay)]] as const;
    });
    return {
      spare: Math.max(0, Math.ceil(concurrency / 2) - this.total),
      room: laneConcurrency,
      loads: Object.fromEntries(loads),
    };
  }
}
