import { networkOf } from '@atoll/contracts';

const windowMs = 60_000;
const addressesAtMost = 10_000;

/** Counts connections that tried keys and ended without a log-in, by network and minute. */
export class FailedAttempts {
  readonly #counts = new Map<string, { count: number; readonly sinceMs: number }>();

  constructor(
    private readonly atMost: number,
    private readonly nowMs: () => number = Date.now,
  ) {}

  add(address: string): void {
    const network = networkOf(address);
    const known = this.#current(network);
    if (known) known.count += 1;
    else this.#begin(network);
  }

  areTooMany(address: string): boolean {
    return (this.#current(networkOf(address))?.count ?? 0) >= this.atMost;
  }

  #current(network: string): { count: number } | undefined {
    const known = this.#counts.get(network);
    return known && this.nowMs() - known.sinceMs < windowMs ? known : undefined;
  }

  /** The oldest is forgotten where there are too many: the order of insertion is the order in time. */
  #begin(network: string): void {
    this.#counts.delete(network);
    this.#counts.set(network, { count: 1, sinceMs: this.nowMs() });
    const [oldest] = this.#counts.keys();
    if (this.#counts.size > addressesAtMost && oldest !== undefined) this.#counts.delete(oldest);
  }
}
