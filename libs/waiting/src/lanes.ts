export interface LaneBounds {
  /** Work that runs at once in each lane. */
  width: number;
  /** Work that waits, in all lanes together. */
  maxWaiting: number;
  /** How long work waits before it is refused, in milliseconds. */
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
  /** Before all of those. */
  urgent: Set<() => void>;
}

interface Wish {
  /** How long this work waits, in milliseconds, in place of the patience of all. */
  patienceMs?: number;
  /** It goes before all that is not, and runs beside no more than the width allows all the same. */
  isUrgent?: boolean;
}

/**
 * Work by lanes, within one process: in each at most `width` runs at once, and the rest waits for its turn, first come,
 * first served. What waits too long, or finds too much waiting, is not run and throws the refusal. A lane is forgotten
 * when nothing runs in it.
 */
export class Lanes {
  readonly #lanes = new Map<string, Lane>();
  #waiting = 0;

  constructor(
    private readonly bounds: LaneBounds,
    /** Made for work that waited too long, or found too much waiting. */
    private readonly refusal: (why: Refused) => Error,
  ) {}

  async run<T>(name: string, work: () => Promise<T>, wish: Wish = {}): Promise<T> {
    const lane = this.#laneOf(name);
    if (lane.running < this.bounds.width) lane.running += 1;
    else await this.#turn(lane, wish);
    try {
      return await work();
    } finally {
      this.#leave(name, lane);
    }
  }

  #laneOf(name: string): Lane {
    let lane = this.#lanes.get(name);
    if (!lane) this.#lanes.set(name, (lane = { running: 0, served: 0, waiting: new Set(), urgent: new Set() }));
    return lane;
  }

  /** Resolves when the place of work that is done is handed over. */
  #turn(lane: Lane, { patienceMs = this.bounds.patienceMs, isUrgent = false }: Wish): Promise<void> {
    if (this.#waiting >= this.bounds.maxWaiting) return Promise.reject(this.refusal({ stalled: false }));
    const { served } = lane;
    const line = isUrgent ? lane.urgent : lane.waiting;
    return new Promise((resolve, reject) => {
      const leaveLine = (): void => {
        clearTimeout(timer);
        line.delete(enter);
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
      line.add(enter);
      this.#waiting += 1;
    });
  }

  #leave(name: string, lane: Lane): void {
    const [next] = lane.urgent.size > 0 ? lane.urgent : lane.waiting;
    lane.served += 1;
    if (next) next();
    else if ((lane.running -= 1) === 0) this.#lanes.delete(name);
  }
}
