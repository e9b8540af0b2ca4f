/** How long a lane counts as hanging after one of its steps was cut off. */
const hangingMs = 60_000;

/** For `Claims`: how many steps may begin, in all and in each lane. */
export interface LaneLoads {
  /** Steps that may begin beside others of their lanes. The first step of a lane may begin besides. */
  readonly spare: number;
  /** Steps that may begin in a lane that is not named in `loads`. */
  readonly room: number;
  /** Lane → [steps under way, steps that may begin], of each lane that differs from an idle one. */
  readonly loads: Readonly<Record<string, readonly [underWay: number, room: number]>>;
}

export interface LaneLimits {
  /** Steps under way at once, of all lanes together. */
  readonly concurrency: number;
  /** Of one lane. */
  readonly laneConcurrency: number;
}

/**
 * What is under way in each lane of one machine in this process, and which lanes hang. A lane that hangs is tried by
 * one step at a time. And one half of all steps is kept for the first step of each lane, so that many lanes which hang
 * without being known to do so leave room for those that do not.
 */
export class Lanes {
  private readonly underWay = new Map<string, number>();
  private readonly hangingSinceMs = new Map<string, number>();
  private total = 0;

  constructor(
    private readonly limits: LaneLimits,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  /** Steps that may begin, of all lanes together. */
  get free(): number {
    return this.limits.concurrency - this.total;
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

  /** A step of the lane was cut off without an answer. */
  hung(lane: string): void {
    this.hangingSinceMs.set(lane, this.nowMs());
  }

  answered(lane: string): void {
    this.hangingSinceMs.delete(lane);
  }

  /** Lanes of which a step was cut off within the last minute, and none has answered since. */
  get hanging(): string[] {
    for (const [lane, sinceMs] of this.hangingSinceMs) if (this.nowMs() - sinceMs > hangingMs) this.hangingSinceMs.delete(lane);
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
    return { spare: Math.max(0, Math.ceil(concurrency / 2) - this.total), room: laneConcurrency, loads: Object.fromEntries(loads) };
  }
}
