import { isOutage } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { LogClaims } from './log-claims.js';
import type { ReadLines } from './log-progress.js';
import { LogQueue, type Waiting } from './log-queue.js';
import { LogStore } from './log-store.js';

/** What is written one after the other. */
interface Line {
  readonly queue: LogQueue;
  isWriting: boolean;
}

const newLine = (): Line => ({ queue: new LogQueue(), isWriting: false });

/**
 * Writes what all readers of this process have read, together: while one transaction runs, the next one gathers. A
 * reader has one batch here at most, and teams take turns, so that a team that writes much delays another by one
 * transaction. A team whose lines the store refused while it took those of others is written apart from them until the
 * store takes its lines again: it may be over a limit of its own, and to ask may take long.
 */
@Injectable()
export class LogWriter {
  private readonly together = newLine();
  private readonly apart = new Map<string, Line>();

  constructor(
    private readonly store: LogStore,
    private readonly claims: LogClaims,
  ) {}

  /**
   * Resolves when the lines are stored: with false where another replica reads this source meanwhile, and nothing was
   * kept. Throws what the store throws.
   */
  write(read: ReadLines): Promise<boolean> {
    const line = this.apart.get(read.source.teamId) ?? this.together;
    return new Promise<boolean>((resolve, reject) => {
      line.queue.add({ read, resolve, reject });
      if (!line.isWriting) void this.writeAll(line);
    });
  }

  private async writeAll(line: Line): Promise<void> {
    line.isWriting = true;
    // What comes in the same turn of the event loop goes along.
    await Promise.resolve();
    while (line.queue.size > 0) await this.writeSome(line.queue.take(), line);
    line.isWriting = false;
  }

  private async writeSome(some: readonly Waiting[], line: Line): Promise<void> {
    let kept: ReadonlySet<number> = new Set();
    let failed: ReadonlyMap<number, unknown>;
    const save = async (manager: EntityManager, stored: readonly ReadLines[]) =>
      (kept = await this.claims.save(manager, stored));
    try {
      failed = await this.store.append(
        some.map(({ read }) => read),
        save,
      );
    } catch (error) {
      return this.writeApart(some, line, error);
    }
    // Where no lines were stored at all, the store may be away for everybody.
    const hasStored = some.some(({ read }) => read.lines.length > 0 && !failed.has(read.source.no));
    for (const { read, resolve, reject } of some) {
      const { no, teamId } = read.source;
      if (failed.has(no)) {
        if (hasStored) this.setApart(teamId);
        reject(failed.get(no));
      } else {
        if (this.apart.get(teamId) === line) this.apart.delete(teamId);
        resolve(kept.has(no));
      }
    }
  }

  /**
   * What the store cannot take for a reason that lies in the lines fails alone: the halves are written one after the
   * other, until what is wrong is by itself.
   */
  private async writeApart(some: readonly Waiting[], line: Line, error: unknown): Promise<void> {
    if (some.length === 1 || isOutage(error)) {
      for (const { reject } of some) reject(error);
      return;
    }
    const half = Math.ceil(some.length / 2);
    await this.writeSome(some.slice(0, half), line);
    await this.writeSome(some.slice(half), line);
  }

  private setApart(teamId: string): void {
    if (this.apart.has(teamId)) return;
    const line = newLine();
    this.apart.set(teamId, line);
    for (const waiting of this.together.queue.takeOf(teamId)) line.queue.add(waiting);
    if (line.queue.size > 0) void this.writeAll(line);
  }
}
