import type { Schemas } from '../../api/client.js';

export type LogLine = Schemas['PodLogLine'];

/** The parameters of `GET /logs/pods` by which a page of a log is read, besides its filters. */
export interface PageQuery {
  order: 'asc' | 'desc';
  limit: number;
  since?: string;
  until?: string;
  cursor?: string;
}

/** Reads a page; `isSearch`: of the lines that were searched for, where the log is searched. */
type ReadPage = (
  query: PageQuery,
  isSearch: boolean,
) => Promise<{ data: readonly LogLine[]; next_cursor: string | null }>;

interface FeedTerms {
  /** Instant at which the range starts, included. */
  since?: string | undefined;
  /** Instant at which the range ends, not included. */
  until?: string | undefined;
  /** Instant of the line to begin at; the newest lines if left out. */
  at?: string | undefined;
  /**
   * Whether lines of several pods are read: the platform gives those to a follower 3 s after they were written, or
   * later.
   */
  isOfSeveralPods: boolean;
}

export interface FeedState {
  /** Oldest first. */
  readonly lines: readonly LogLine[];
  /** Number of the first line: lower by each line added before it, higher by each dropped. A line keeps its number. */
  readonly first: number;
  /** `full`: there may be older lines, and no room for them. */
  readonly older: 'unread' | 'more' | 'none' | 'full';
  /** Whether the end of the range, or the end of the log for now, has been read. */
  readonly isAtEnd: boolean;
}

const firstPage = 500;
const pageLimit = 1_000;
/** After a page of more lines the next one is not waited for: it was full, or ended at 2 MiB; a line has 16 KiB. */
const fewLines = 100;
const capacity = 10_000;
/** As the platform's: lines of several pods are in order when they are this old. */
const settleMs = 3_000;

/**
 * A part of a log, read in both directions from one instant: back by the cursor of `order=desc`, forward by that of
 * `order=asc`, each without a gap and without a line twice. It keeps at most 10,000 lines: what it follows drops its
 * oldest.
 */
export class LogFeed {
  private state: FeedState = { lines: [], first: 0, older: 'unread', isAtEnd: false };
  private readonly listeners = new Set<() => void>();
  /** Lines before it are read backwards, those from it on forwards. */
  private anchor: string | undefined;
  private backCursor: string | undefined;
  private forwardCursor: string | undefined;
  private running: Promise<unknown> = Promise.resolve();
  private loadingOlder: Promise<void> | undefined;

  constructor(
    private readonly read: ReadPage,
    private readonly terms: FeedTerms,
  ) {}

  readonly snapshot = (): FeedState => this.state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Reads the lines to begin with. Rejects as `read` does, and may then be called again. */
  start(): Promise<void> {
    return this.inTurn(async () => {
      if (this.state.older !== 'unread') return;
      const { at, since, until } = this.terms;
      this.anchor = at ?? until ?? (await this.newestInstant());
      if (this.anchor !== undefined && this.anchor > (since ?? '')) {
        await this.readBack(firstPage);
      } else {
        this.anchor = since;
        this.become({ ...this.state, older: 'none' });
      }
      await this.readOn();
    });
  }

  /** Reads a page of lines before the first: one, however often it is asked for meanwhile. */
  loadOlder(): Promise<void> {
    this.loadingOlder ??= this.inTurn(async () => {
      if (this.state.older === 'more') await this.readBack(pageLimit);
    }).finally(() => (this.loadingOlder = undefined));
    return this.loadingOlder;
  }

  /**
   * Reads what comes after the last line: of a live log, what was written since. Resolves to whether so much came that
   * there is likely more. The cursor does not tell: a search moves it with each line that is stored, found or not.
   */
  loadNewer(): Promise<boolean> {
    return this.inTurn(() => this.readOn());
  }

  /** Of the log as a whole: a search may have no line, and yet have to be followed from here. */
  private async newestInstant(): Promise<string | undefined> {
    const { since } = this.terms;
    const { data } = await this.read({ order: 'desc', limit: 1, ...(since !== undefined && { since }) }, false);
    const newest = data[0]?.timestamp;
    if (newest === undefined || !this.terms.isOfSeveralPods) return newest;
    return new Date(Date.parse(newest) - settleMs).toISOString();
  }

  private async readBack(limit: number): Promise<void> {
    const { since } = this.terms;
    const page = await this.read(
      {
        order: 'desc',
        limit,
        ...(since !== undefined && { since }),
        ...(this.anchor !== undefined && { until: this.anchor }),
        ...(this.backCursor !== undefined && { cursor: this.backCursor }),
      },
      true,
    );
    this.backCursor = page.next_cursor ?? undefined;
    const { lines, first } = this.state;
    const room = capacity - lines.length;
    const added = page.data.slice(0, room).toReversed();
    const hasMore = page.next_cursor !== null || page.data.length > room;
    const older = !hasMore ? 'none' : page.data.length >= room ? 'full' : 'more';
    this.become({ ...this.state, lines: [...added, ...lines], first: first - added.length, older });
  }

  private async readOn(): Promise<boolean> {
    const { until } = this.terms;
    if (until !== undefined && this.anchor !== undefined && this.anchor >= until) {
      this.become({ ...this.state, isAtEnd: true });
      return false;
    }
    const page = await this.read(
      {
        order: 'asc',
        limit: pageLimit,
        ...(this.anchor !== undefined && { since: this.anchor }),
        ...(until !== undefined && { until }),
        ...(this.forwardCursor !== undefined && { cursor: this.forwardCursor }),
      },
      true,
    );
    // Whoever is at the end is sent back to where they are; pages of a search may be empty before.
    const isAtEnd = page.data.length === 0 && (page.next_cursor === null || page.next_cursor === this.forwardCursor);
    this.forwardCursor = page.next_cursor ?? this.forwardCursor;
    if (page.data.length === 0 && isAtEnd === this.state.isAtEnd) return false;
    const all = [...this.state.lines, ...page.data];
    const dropped = Math.max(0, all.length - capacity);
    this.become({
      lines: all.slice(dropped),
      first: this.state.first + dropped,
      older: dropped > 0 ? 'full' : this.state.older,
      isAtEnd,
    });
    return page.data.length > fewLines;
  }

  private become(state: FeedState): void {
    this.state = state;
    for (const listener of this.listeners) listener();
  }

  /** One page at a time, whichever the direction. */
  private inTurn<Result>(step: () => Promise<Result>): Promise<Result> {
    const mine = this.running.then(step);
    this.running = mine.catch(() => undefined);
    return mine;
  }
}

/** The address of a line: its instant, and its place among the lines of that instant. */
export function addressOf(lines: readonly LogLine[], index: number): string {
  const timestamp = lines[index]?.timestamp ?? '';
  let before = 0;
  while (lines[index - before - 1]?.timestamp === timestamp) before += 1;
  return before === 0 ? timestamp : `${timestamp}~${before}`;
}

/** The index of the line of an address; -1 where it is not among the lines. */
export function indexOfAddress(lines: readonly LogLine[], address: string): number {
  const [timestamp = '', before = '0'] = address.split('~');
  const first = lines.findIndex((line) => line.timestamp === timestamp);
  const index = first + Number(before);
  return first >= 0 && lines[index]?.timestamp === timestamp ? index : -1;
}

/** The instant in the address of a line; undefined if it has none. */
export function instantOfAddress(address: string): string | undefined {
  const [, timestamp] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)(?:~\d{1,5})?$/.exec(address) ?? [];
  return timestamp !== undefined && !Number.isNaN(Date.parse(timestamp)) ? timestamp : undefined;
}
