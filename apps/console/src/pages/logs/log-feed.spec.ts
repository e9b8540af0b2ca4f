import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { addressOf, indexOfAddress, instantOfAddress, LogFeed, type LogLine, type PageQuery } from './log-feed.js';

const startMs = Date.parse('2026-11-01T00:00:00Z');
const line = (ms: number, no: number): LogLine => ({
  timestamp: new Date(startMs + ms).toISOString(),
  pod_name: 'trainer-abcde',
  container: 'main',
  stream: 'stdout',
  message: `line ${no}`,
  gpuaas_id: '1',
});

/**
 * A log as the platform reads it: a cursor is the number of the last line that was looked at. `window`: lines a search
 * looks at for a page.
 */
class Log {
  readonly lines: LogLine[] = [];
  readonly asked: PageQuery[] = [];
  fault: Error | null = null;
  /** Lines that are written before each read of newer ones. */
  writtenMeanwhile = 0;

  constructor(
    private readonly search = '',
    private readonly window = Infinity,
  ) {}

  write(...offsetsMs: readonly number[]): void {
    for (const ms of offsetsMs) this.lines.push(line(ms, this.lines.length));
  }

  readonly read = (query: PageQuery, isSearch: boolean) => {
    this.asked.push(query);
    if (this.fault) return Promise.reject(this.fault);
    const { order, limit, since = '', until = '9', cursor } = query;
    if (order === 'asc') this.write(...Array.from({ length: this.writtenMeanwhile }, () => this.lines.length));
    const all = this.lines
      .map((entry, no) => ({ entry, no }))
      .filter(({ entry: { timestamp } }) => timestamp >= since && timestamp < until);
    const ordered = order === 'asc' ? all : all.toReversed();
    const after = Number(cursor ?? (order === 'asc' ? -1 : Infinity));
    const left = ordered.filter(({ no }) => (order === 'asc' ? no > after : no < after));
    const looked: typeof left = [];
    const data: LogLine[] = [];
    for (const found of left) {
      if (data.length === limit || looked.length === this.window) break;
      looked.push(found);
      if (!isSearch || found.entry.message.includes(this.search)) data.push(found.entry);
    }
    const last = String(looked.at(-1)?.no ?? after);
    return Promise.resolve({ data, next_cursor: order === 'asc' ? last : looked.length < left.length ? last : null });
  };
}

const messages = (feed: LogFeed) => feed.snapshot().lines.map(({ message }) => message);
const written = (log: Log, from = 0) => log.lines.slice(from).map(({ message }) => message);

describe('a feed of a log', () => {
  it('law: whatever is written, read back and followed, in whichever order, each line is there once and in order', async () => {
    const step = fc.oneof(
      fc.constant('older' as const),
      fc.constant('newer' as const),
      fc.array(fc.nat(2), { maxLength: 900 }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(2), { maxLength: 3_000 }),
        fc.array(step, { maxLength: 8 }),
        fc.boolean(),
        async (gaps, steps, isSearch) => {
          const log = isSearch ? new Log('7', 700) : new Log();
          let ms = 0;
          const write = (more: readonly number[]) => log.write(...more.map((gap) => (ms += gap)));
          write(gaps);
          const feed = new LogFeed(log.read, { isOfSeveralPods: false });
          await feed.start();
          for (const each of steps) {
            if (each === 'older') await feed.loadOlder();
            else if (each === 'newer') await feed.loadNewer();
            else write(each);
          }
          while (feed.snapshot().older === 'more') await feed.loadOlder();
          do await feed.loadNewer();
          while (!feed.snapshot().isAtEnd);
          expect(messages(feed)).toEqual(written(log).filter((message) => !isSearch || message.includes('7')));
        },
      ),
      { numRuns: 60 },
    );
  });

  it('law: a line keeps its number', async () => {
    const log = new Log();
    log.write(...Array.from({ length: 4_000 }, (_, at) => at));
    const feed = new LogFeed(log.read, { isOfSeveralPods: false });
    await feed.start();
    const { first, lines } = feed.snapshot();
    await feed.loadOlder();
    log.write(...Array.from({ length: 9_000 }, (_, at) => 5_000 + at));
    for (let page = 0; page < 10; page += 1) await feed.loadNewer();
    const later = feed.snapshot();
    expect(later.lines).toHaveLength(10_000);
    expect(later.older).toBe('full');
    const no = lines.length + first - 1;
    expect(later.lines[no - later.first]?.message ?? 'dropped').toBe(
      no < later.first ? 'dropped' : lines.at(-1)?.message,
    );
    expect(later.lines.at(-1)?.message).toBe(written(log).at(-1));
  });

  it('reads one page back, however often it is asked for while that is under way', async () => {
    const log = new Log();
    log.write(...Array.from({ length: 4_000 }, (_, at) => at));
    const feed = new LogFeed(log.read, { isOfSeveralPods: false });
    await feed.start();
    const { length } = feed.snapshot().lines;
    await Promise.all([feed.loadOlder(), feed.loadOlder(), feed.loadOlder()]);
    expect(feed.snapshot().lines).toHaveLength(length + 1_000);
    await feed.loadOlder();
    expect(feed.snapshot().lines).toHaveLength(length + 2_000);
  });

  it('reads back no more than it has room for, and says so', async () => {
    const log = new Log();
    log.write(...Array.from({ length: 12_000 }, (_, at) => at));
    const feed = new LogFeed(log.read, { isOfSeveralPods: false });
    await feed.start();
    while (feed.snapshot().older === 'more') await feed.loadOlder();
    expect(feed.snapshot().older).toBe('full');
    expect(messages(feed)).toEqual(written(log, 2_000));
  });

  it('begins at the line that a link names, with what stands before and after it', async () => {
    const log = new Log();
    log.write(...Array.from({ length: 3_000 }, (_, at) => at));
    const at = log.lines[1_500]?.timestamp;
    const feed = new LogFeed(log.read, { at, isOfSeveralPods: false });
    await feed.start();
    expect(messages(feed)).toEqual(written(log).slice(1_000, 2_500));
    expect(feed.snapshot().isAtEnd).toBe(false);
  });

  it('asks for no line outside of its range', async () => {
    const log = new Log();
    log.write(...Array.from({ length: 100 }, (_, at) => at));
    const [since, until] = [log.lines[20]?.timestamp, log.lines[60]?.timestamp];
    const feed = new LogFeed(log.read, { since, until, isOfSeveralPods: true });
    await feed.start();
    await feed.loadNewer();
    expect(messages(feed)).toEqual(written(log).slice(20, 60));
    expect(feed.snapshot()).toMatchObject({ older: 'none', isAtEnd: true });
    const nothing = new LogFeed(log.read, { since: new Date(startMs + 5_000).toISOString(), isOfSeveralPods: true });
    await nothing.start();
    log.write(6_000);
    await nothing.loadNewer();
    expect(messages(nothing)).toEqual(['line 100']);
  });

  it.each(['', 'needle'])(
    'has who follows a log that is written all the time wait after each page of few lines, search %j',
    async (search) => {
      const log = new Log(search);
      log.write(1, 2, 3);
      log.writtenMeanwhile = 50;
      const feed = new LogFeed(log.read, { isOfSeveralPods: false });
      await feed.start();
      for (let page = 0; page < 5; page += 1) expect(await feed.loadNewer()).toBe(false);
      const cursors = log.asked.slice(-5).map(({ cursor }) => cursor);
      expect(new Set(cursors).size).toBe(5);
      expect(messages(feed)).toEqual(search === '' ? written(log) : []);
    },
  );

  it('has who is behind ask for the next page at once, until there are few lines', async () => {
    const log = new Log();
    log.write(1);
    const feed = new LogFeed(log.read, { isOfSeveralPods: false });
    await feed.start();
    log.write(...Array.from({ length: 2_010 }, (_, at) => 2 + at));
    expect([await feed.loadNewer(), await feed.loadNewer(), await feed.loadNewer()]).toEqual([true, true, false]);
    expect(messages(feed)).toEqual(written(log));
  });

  it('goes on where it was after a read that failed', async () => {
    const log = new Log();
    log.write(1, 2, 3);
    const feed = new LogFeed(log.read, { isOfSeveralPods: false });
    log.fault = new Error('503');
    await expect(feed.start()).rejects.toThrow('503');
    log.fault = null;
    await feed.start();
    log.fault = new Error('503');
    await expect(feed.loadNewer()).rejects.toThrow('503');
    log.fault = null;
    log.write(4);
    await feed.loadNewer();
    expect(messages(feed)).toEqual(written(log));
  });
});

describe('the address of a line', () => {
  it('law: names it among lines of one instant', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(2), { minLength: 1, maxLength: 50 }), (gaps) => {
        let ms = 0;
        const lines = gaps.map((gap, no) => line((ms += gap), no));
        for (const index of lines.keys()) {
          const address = addressOf(lines, index);
          expect(indexOfAddress(lines, address)).toBe(index);
          expect(instantOfAddress(address)).toBe(lines[index]?.timestamp);
        }
      }),
    );
  });

  it.each(['', 'yesterday', '2026-13-45T00:00:00.000Z', '2026-11-01T00:00:00.000Z~x', '~1'])('is not %j', (text) => {
    expect(instantOfAddress(text)).toBeUndefined();
  });
});
