import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { LogClaims, type ReadLines } from './log-claims.js';
import { LogStore } from './log-store.js';

/** What one transaction takes; the rest waits for the next. */
const linesAtOnce = 10_000;

interface Waiting {
  readonly read: ReadLines;
  readonly resolve: (isKept: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Writes what all readers of this process have read, together: while one transaction runs, the next one gathers. A reader has one batch here at most, so
 * that a pod that writes much delays another by one transaction.
 */
@Injectable()
export class LogWriter {
  private waiting: Waiting[] = [];
  private isWriting = false;

  constructor(
    private readonly store: LogStore,
    private readonly claims: LogClaims,
  ) {}

  /** Resolves when the lines are stored: with false where another replica reads this source meanwhile, and nothing was kept. Throws what the store throws. */
  write(read: ReadLines): Promise<boolean> {
    const done = new Promise<boolean>((resolve, reject) => this.waiting.push({ read, resolve, reject }));
    if (!this.isWriting) void this.writeAll();
    return done;
  }

  private async writeAll(): Promise<void> {
    this.isWriting = true;
    // What comes in the same turn of the event loop goes along.
    await Promise.resolve();
    while (this.waiting.length > 0) await this.writeSome(this.takeSome());
    this.isWriting = false;
  }

  private takeSome(): Waiting[] {
    let lines = 0;
    const rest = this.waiting.findIndex(({ read }, at) => (lines += read.lines.length) > linesAtOnce && at > 0);
    return this.waiting.splice(0, rest < 0 ? this.waiting.length : rest);
  }

  private async writeSome(some: readonly Waiting[]): Promise<void> {
    const reads = some.map(({ read }) => read);
    let kept: ReadonlySet<number> = new Set();
    try {
      await this.store.append(reads, async (manager: EntityManager) => (kept = await this.claims.save(manager, reads)));
      for (const { read, resolve } of some) resolve(kept.has(read.source.no));
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
  }
}
