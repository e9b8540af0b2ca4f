export interface LaneBounds {
  /** Work that runs at once in each lane. */
  width: number;
  /** Work that waits, in all lanes together. */
  maxWaiting: number;
  /** How long work waits before it is refused, in milliseconds, unless it brings a patience of its own. */
  patienceMs: number;
}

/** Why work is refused. */
export interface Refused {
  /** While it waited no place of its lane came free: what runs there does not come to an end. */
  stalled: boolean;
}

interface Lane {
  running: number;
  /** Places that have been handed over. */
  served: number;
  /** In the order in which they came. */
  waiting: Set<() => void>;
}

/**
 * Work by lanes, within one process: in each at most `width` runs at once, and the rest waits for its turn, first come, first served. What
 * waits too long, or finds too much waiting, is not run and throws the refusal. A lane is forgotten when nothing runs in it.
 */
export class Lanes {
  readonly #lanes = new Map<string, Lane>();
  #waiting = 0;

  constructor(
    private readonly bounds: LaneBounds,
    /** Made for work that waited too long, or found too much waiting. */
    private readonly refusal: (why: Refused) => Error,
  ) {}

  async run<T>(name: string, work: () => Promise<T>, patienceMs = this.bounds.patienceMs): Promise<T> {
    const lane = this.#laneOf(name);
    if (lane.running < this.bounds.width) lane.running += 1;
    else await this.#turn(lane, patienceMs);
    try {
      return await work();
    } finally {
      this.#leave(name, lane);
    }
  }

  #laneOf(name: string): Lane {
    let lane = this.#lanes.get(name);
    if (!lane) this.#lanes.set(name, (lane = { running: 0, served: 0, waiting: new Set() }));
    return lane;
  }

  /** Resolves when the place of work that is done is handed over. */
  #turn(lane: Lane, patienceMs: number): Promise<void> {
    if (this.#waiting >= this.bounds.maxWaiting) return Promise.reject(this.refusal({ stalled: false }));
    const { served, waiting } = lane;
    return new Promise((resolve, reject) => {
      const leaveLine = (): void => {
        clearTimeout(timer);
        waiting.delete(enter);
        this.#waiting -= 1;
      };
      const enter = (): void => {
        leaveLine();
        resolve();
      };
      const timer = setTimeout(() => {
        leaveLine();
        reject(this.refusal({ stalled: lane.served === served }));
      }, patienceMs);
      waiting.add(enter);
      this.#waiting += 1;
    });
  }

  #leave(name: string, lane: Lane): void {
    const [next] = lane.waiting;
    lane.served += 1;
    if (next) next();
    else if ((lane.running -= 1) === 0) this.#lanes.delete(name);
  }
}
