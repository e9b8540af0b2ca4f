import type { ReadLines } from './log-progress.js';

export interface Waiting {
  readonly read: ReadLines;
  readonly resolve: (isKept: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/** What one transaction takes; the rest waits for the next. */
const linesAtOnce = 10_000;
const teamsAtOnce = 100;
/** Characters of one team in it, so that no push to Loki is over what it takes at once. */
const charactersOfTeam = 1_000_000;

/**
 * Lines on their way into the store. Teams take turns: of each the first batch is taken before the second of another.
 */
export class LogQueue {
  /** By team, who waits longest for its turn first. */
  private readonly byTeam = new Map<string, Waiting[]>();
  size = 0;

  add(waiting: Waiting): void {
    const { teamId } = waiting.read.source;
    const ofTeam = this.byTeam.get(teamId);
    if (ofTeam) ofTeam.push(waiting);
    else this.byTeam.set(teamId, [waiting]);
    this.size += 1;
  }

  /** What one transaction takes: at least one batch, where there is any. */
  take(): Waiting[] {
    const taken: Waiting[] = [];
    const turns = [...this.byTeam]
      .slice(0, teamsAtOnce)
      .map(([teamId, waiting]) => ({ teamId, waiting, count: 0, characters: 0 }));
    let lines = 0;
    for (let open = turns; open.length > 0;) {
      open = open.filter((turn) => {
        const next = turn.waiting[turn.count];
        if (!next) return false;
        const ofNext = next.read.lines.reduce((sum, { message }) => sum + message.length, 0);
        const isFull =
          lines + next.read.lines.length > linesAtOnce ||
          (turn.count > 0 && turn.characters + ofNext > charactersOfTeam);
        if (isFull && taken.length > 0) return false;
        taken.push(next);
        lines += next.read.lines.length;
        turn.characters += ofNext;
        turn.count += 1;
        return true;
      });
    }
    for (const { teamId, waiting, count } of turns) {
      if (count === 0) continue;
      // Behind those that had no turn.
      this.byTeam.delete(teamId);
      if (count < waiting.length) this.byTeam.set(teamId, waiting.slice(count));
    }
    this.size -= taken.length;
    return taken;
  }

  /** All that waits of one team. */
  takeOf(teamId: string): readonly Waiting[] {
    const ofTeam = this.byTeam.get(teamId) ?? [];
    this.byTeam.delete(teamId);
    this.size -= ofTeam.length;
    return ofTeam;
  }
}
