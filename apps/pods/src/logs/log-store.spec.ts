import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Statements } from '@atoll/database';
import { describeWhere, endConnections, lokiLacks, onOtherClock, runs } from '@atoll/testing';
import { array, asyncProperty, assert, constantFrom, integer, record, string } from 'fast-check';
import { comparePositions, nsOfMs, type LogSource, type StoredLine } from './log-line.js';
import { aLine, StoreFixture, type StoreName } from './log-store-fixture.js';

const lacking: Record<StoreName, string | undefined> = { postgres: undefined, loki: lokiLacks() };
const messagesOf = (lines: readonly StoredLine[]) => lines.map(({ message }) => message);

describe.each(['postgres', 'loki'] as const)('the log store', (name) => {
  describeWhere(lacking[name], name, () => {
    let fixture: StoreFixture;
    /** Some minutes ago: neither store takes what is old, or ahead. */
    const startNs = nsOfMs(Date.now() - 300_000);

    beforeAll(async () => {
      fixture = await StoreFixture.start(name);
    });
    afterAll(() => fixture.stop());

    async function written(messages: readonly string[]): Promise<LogSource[]> {
      const [source] = (await fixture.sources(1)) as [LogSource];
      await fixture.append(
        source,
        messages.map((message, at) => aLine(source, startNs + BigInt(at), message)),
      );
      return [source];
    }

    it('gives lines back as they were written, newest first or oldest first', async () => {
      const [source] = (await fixture.sources(1)) as [LogSource];
      const lines = [
        aLine(source, startNs, 'one', 'stdout'),
        aLine(source, startNs + 1n, '\ttwo "quoted" \\ \u001b[31mred\u001b[0m', 'stderr'),
        aLine(source, startNs + 2n, '', null),
        aLine(source, startNs + 3n, 'žluťoučký 🐎', 'platform'),
        aLine(source, startNs + 4n, 'x'.repeat(16 * 1024)),
      ];
      await fixture.append(source, lines);
      expect(await fixture.read([source], { order: 'asc' })).toMatchObject({ lines, readTo: null });
      expect(await fixture.read([source])).toMatchObject({ lines: lines.toReversed(), readTo: null });
    });

    it('takes the same lines again and keeps each once, where it was not saved that they were stored', async () => {
      const [source] = (await fixture.sources(1)) as [LogSource];
      const lines = [aLine(source, startNs, 'same'), aLine(source, startNs + 1n, 'same')];
      const dying = () => Promise.reject(new Error('the process died'));
      await expect(fixture.store.append([{ source, lines }], dying)).rejects.toThrow();
      await fixture.append(source, lines);
      expect(messagesOf(await fixture.readAll([source]))).toEqual(['same', 'same']);
    });

    it('reads from an instant on, up to another', async () => {
      const sources = await written(['0', '1', '2', '3']);
      const range = { sinceNs: startNs + 1n, untilNs: startNs + 3n };
      expect(messagesOf(await fixture.readAll(sources, range))).toEqual(['2', '1']);
      expect(messagesOf(await fixture.readAll(sources, { ...range, order: 'asc' }))).toEqual(['1', '2']);
      expect(await fixture.readAll(sources, { sinceNs: startNs + 3n, untilNs: startNs + 3n })).toEqual([]);
    });

    it.each(['%', '_', '.*', '\\', '"', '`', "'", '|=', '{', '$1', '\t', '\\n', 'ž', '🐎', '(', '[a-z]'])(
      'finds %j letter for letter',
      async (planted) => {
        const sources = await written(['nothing here', `before ${planted} after`, 'abc']);
        expect(messagesOf(await fixture.readAll(sources, { search: planted }))).toEqual([`before ${planted} after`]);
      },
    );

    it('finds any text in any line that has it, and no other', async () => {
      const text = () =>
        string({ unit: constantFrom('a', 'b', '%', '_', '\\', '"', '.', '*', ' ', 'ž'), minLength: 1, maxLength: 6 });
      await assert(
        asyncProperty(array(text(), { minLength: 1, maxLength: 8 }), text(), async (messages, search) => {
          const sources = await written(messages);
          expect(messagesOf(await fixture.readAll(sources, { search, order: 'asc', limit: 2 }))).toEqual(
            messages.filter((message) => message.includes(search)),
          );
        }),
        runs(15),
      );
    });

    it.each(['asc', 'desc'] as const)(
      'stops a search (%s) when its time is over, with how far it got, and goes on from there',
      async (order) => {
        const sources = await written(['needle', ...Array.from({ length: 10 }, (_, at) => `hay ${at}`), 'needle']);
        fixture.clock.stepMs = 2_000;
        const asked = { search: 'needle', searchMs: 1_000, order, sinceNs: startNs - nsOfMs(2 * 3_600_000) };
        expect((await fixture.read(sources, asked)).readTo).not.toBeNull();
        expect(messagesOf(await fixture.readAll(sources, asked))).toEqual(['needle', 'needle']);
        fixture.clock.stepMs = 0;
        fixture.clock.offsetMs = 0;
      },
    );

    it('pages through lines of several pods that share instants, and neither loses nor doubles one', async () => {
      const gaps = integer({ min: 0, max: 2 });
      await assert(
        asyncProperty(
          array(record({ pod: integer({ min: 0, max: 3 }), gap: gaps }), { maxLength: 24 }),
          integer({ min: 1, max: 5 }),
          constantFrom('asc', 'desc'),
          async (drawn, limit, order) => {
            const sources = await fixture.sources(4);
            const lastNs = sources.map(() => startNs);
            let atNs = startNs;
            const lines = drawn.map(({ pod, gap }, number) => {
              atNs += BigInt(gap);
              const source = sources[pod]!;
              lastNs[pod] = atNs > lastNs[pod]! ? atNs : lastNs[pod]! + 1n;
              return aLine(source, lastNs[pod], `line ${number}`);
            });
            for (const source of sources) {
              await fixture.append(
                source,
                lines.filter(({ sourceNo }) => sourceNo === source.no),
              );
            }
            const inOrder = lines.toSorted(comparePositions);
            if (order === 'desc') inOrder.reverse();
            expect(await fixture.readAll(sources, { limit, order, sinceNs: startNs })).toMatchObject(inOrder);
          },
        ),
        runs(15),
      );
    });

    it('follows: what is written after a last page is on the next one', async () => {
      const [source] = (await fixture.sources(1)) as [LogSource];
      await fixture.append(source, [aLine(source, startNs, 'one')]);
      const { lines } = await fixture.read([source], { order: 'asc' });
      await fixture.append(source, [aLine(source, startNs + 1n, 'two')]);
      const next = await fixture.read([source], { order: 'asc', after: lines.at(-1)! });
      expect(messagesOf(next.lines)).toEqual(['two']);
    });

    it('reads one pod or one GPU service of a team', async () => {
      const teamId = randomUUID();
      const [one, other] = (await fixture.sources(2, { teamId })) as [LogSource, LogSource];
      const [elsewhere] = (await fixture.sources(1, { teamId, gpuaasId: '2' })) as [LogSource];
      for (const source of [one, other, elsewhere])
        await fixture.append(source, [aLine(source, startNs, source.podName + source.gpuaasId)]);
      const every = [one, other, elsewhere];
      expect(messagesOf(await fixture.readAll(every, { order: 'asc' }))).toEqual(['pod-11', 'pod-21', 'pod-12']);
      expect(messagesOf(await fixture.readAll(every, { sources: [other] }))).toEqual(['pod-21']);
      expect(messagesOf(await fixture.readAll([elsewhere]))).toEqual(['pod-12']);
    });

    it('has nothing for a team that has written nothing', async () => {
      const sources = await fixture.sources(1);
      expect(await fixture.read(sources)).toEqual({ lines: [], readTo: null });
    });
  });
});

describe('the log store in PostgreSQL', () => {
  let fixture: StoreFixture;
  beforeAll(async () => {
    fixture = await StoreFixture.start('postgres');
  });
  afterAll(() => fixture.stop());

  const partitions = async () =>
    (
      await fixture.query<{ name: string }>(
        `SELECT relname AS name FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = 'log_line'::regclass ORDER BY 1`,
      )
    ).map(({ name }) => name);
  const dayOf = (ms: number) => `log_line_${new Date(ms).toISOString().slice(0, 10).replaceAll('-', '')}`;

  it('drops lines that are older than the retention, a day at a time, and takes none of that age any more', async () => {
    const [source] = (await fixture.sources(1)) as [LogSource];
    const dayMs = 86_400_000;
    // The store's clock is at noon of yesterday: no day ends meanwhile.
    const nowMs = Math.floor(Date.now() / dayMs) * dayMs - dayMs / 2;
    const toNoonMs = nowMs - Date.now();
    fixture.clock.offsetMs = toNoonMs;
    const old = aLine(source, nsOfMs(nowMs - 7 * dayMs), 'old');
    await fixture.append(source, [old, aLine(source, nsOfMs(nowMs), 'new')]);
    await fixture.store.maintain();
    expect(messagesOf(await fixture.readAll([source]))).toEqual(['new', 'old']);

    fixture.clock.offsetMs = toNoonMs + dayMs;
    await fixture.store.maintain();
    expect(messagesOf(await fixture.readAll([source]))).toEqual(['new']);
    await fixture.append(source, [old]);
    expect(messagesOf(await fixture.readAll([source]))).toEqual(['new']);
    expect(await partitions()).toEqual([dayOf(nowMs), dayOf(nowMs + dayMs), dayOf(nowMs + 2 * dayMs)]);
    fixture.clock.offsetMs = 0;
  });

  it('a replica whose clock is a month ahead drops no line, and takes those of today', async () => {
    const [source] = (await fixture.sources(1)) as [LogSource];
    const [before, meanwhile] = ['before', 'meanwhile'].map((message, at) =>
      aLine(source, nsOfMs(Date.now()) + BigInt(at), message),
    ) as [StoredLine, StoredLine];
    await fixture.append(source, [before]);
    await onOtherClock(30 * 86_400_000, async () => {
      const replica = fixture.replica();
      await replica.append([{ source, lines: [meanwhile] }], () => Promise.resolve(new Set([source.no])));
      await replica.maintain();
    });
    expect(messagesOf(await fixture.readAll([source], { order: 'asc' }))).toEqual(['before', 'meanwhile']);
  });

  it('makes a partition once, however many replicas write its first line', async () => {
    const sources = await fixture.sources(6);
    const atNs = nsOfMs(Date.now() - 3 * 86_400_000);
    await Promise.all(sources.map((source) => fixture.append(source, [aLine(source, atNs, source.podName)])));
    expect(await fixture.readAll(sources)).toHaveLength(6);
  });

  it('after a failover that lost a partition, makes it again', async () => {
    const [source] = (await fixture.sources(1)) as [LogSource];
    const atMs = Date.now() - 2 * 86_400_000;
    await fixture.append(source, [aLine(source, nsOfMs(atMs), 'lost')]);
    await fixture.query(`DROP TABLE ${dayOf(atMs)}`);
    await endConnections((sql) => fixture.query(sql));
    await fixture.append(source, [aLine(source, nsOfMs(atMs), 'again')]);
    expect(messagesOf(await fixture.readAll([source]))).toEqual(['again']);
  });

  it('stops a page at 2 MiB, and goes on with the next', async () => {
    const [source] = (await fixture.sources(1)) as [LogSource];
    const atNs = nsOfMs(Date.now());
    const lines = Array.from({ length: 200 }, (_, at) =>
      aLine(source, atNs + BigInt(at), `${at} `.padEnd(16 * 1024, 'x')),
    );
    await fixture.append(source, lines);
    const { lines: first, readTo } = await fixture.read([source], { limit: 1000, order: 'asc' });
    expect([first.length, readTo?.atNs]).toEqual([128, first.at(-1)?.atNs]);
    expect(await fixture.readAll([source], { limit: 1000, order: 'asc' })).toEqual(lines);
  });

  it('takes no more out of the database than a page and a line, however many lines are asked for', async () => {
    const [source] = (await fixture.sources(1)) as [LogSource];
    const atNs = nsOfMs(Date.now());
    const lines = Array.from({ length: 300 }, (_, at) => aLine(source, atNs + BigInt(at), 'x'.repeat(16 * 1024)));
    await fixture.append(source, lines);
    const query = jest.spyOn(Statements.prototype, 'query');
    const store = fixture.replica();
    for (const order of ['asc', 'desc'] as const) {
      await fixture.read([source], { limit: 1000, order });
      const { lines: found, readTo } = await fixture.read([source], { limit: 1000, order, search: 'x', store });
      expect([found.length, readTo]).toEqual([128, found.at(-1)]);
    }
    const taken = await Promise.all(query.mock.results.map(({ value }) => value as Promise<unknown[]>));
    query.mockRestore();
    // A search returns one more row: the last line that it examined.
    expect(taken.map((rows) => rows.length)).toEqual([129, 130, 129, 130]);
    expect(await fixture.readAll([source], { limit: 1000, order: 'asc', search: 'x', store })).toEqual(lines);
  });

  it.each(['asc', 'desc'] as const)(
    'a step of a search (%s) ends by the bytes of its lines times the length of the text, and the next goes on',
    async (order) => {
      const [source] = (await fixture.sources(1)) as [LogSource];
      const [atNs, bytes, search] = [nsOfMs(Date.now()), 16 * 1024, 'b'.repeat(200)];
      const lines = Array.from({ length: 200 }, (_, at) =>
        aLine(source, atNs + BigInt(at), at === 100 ? search.padStart(bytes, 'a') : 'a'.repeat(bytes)),
      );
      await fixture.append(source, lines);
      const inOrder = order === 'asc' ? lines : lines.toReversed();
      // One step, and with as many lines as in production.
      const step = { order, searchMs: 0, store: fixture.replica() };
      const { readTo } = await fixture.read([source], { ...step, search });
      const examined = inOrder.findIndex((line) => line.atNs === readTo?.atNs) + 1;
      expect(examined).toBeGreaterThan(1);
      expect((examined - 1) * bytes * search.length).toBeLessThan(200_000_000);
      expect(await fixture.readAll([source], { ...step, search })).toEqual([lines[100]]);
      expect(await fixture.read([source], { ...step, search: 'c' })).toEqual({ lines: [], readTo: null });
    },
  );

  it('keeps no line of a source that another replica reads meanwhile', async () => {
    const [one, other] = (await fixture.sources(2)) as [LogSource, LogSource];
    const atNs = nsOfMs(Date.now());
    const groups = [one, other].map((source) => ({ source, lines: [aLine(source, atNs, source.podName)] }));
    await fixture.store.append(groups, () => Promise.resolve(new Set([other.no])));
    expect(messagesOf(await fixture.readAll([one]))).toEqual(['pod-2']);
  });
});

describeWhere(lacking.loki, 'the log store in Loki', () => {
  let fixture: StoreFixture;
  beforeAll(async () => {
    fixture = await StoreFixture.start('loki');
  });
  afterAll(() => fixture.stop());

  it('says that it is unavailable while Loki is away, saves nothing, and goes on afterwards', async () => {
    const [source] = (await fixture.sources(1)) as [LogSource];
    await fixture.loki!.kill();
    let saved = 0;
    const lines = [aLine(source, nsOfMs(Date.now()), 'late')];
    const save = () => Promise.resolve(new Set([source.no, (saved += 1)]));
    await expect(fixture.store.append([{ source, lines }], save)).rejects.toMatchObject({ code: 'unavailable' });
    await expect(fixture.read([source])).rejects.toMatchObject({ code: 'unavailable' });
    expect(saved).toBe(0);
    await fixture.loki!.restart();
    await fixture.store.append([{ source, lines }], save);
    expect(messagesOf(await fixture.readAll([source]))).toEqual(['late']);
  });

  it('keeps teams apart: another tenant has none of it', async () => {
    const [source] = (await fixture.sources(1)) as [LogSource];
    await fixture.append(source, [aLine(source, nsOfMs(Date.now()), 'mine')]);
    expect(await fixture.read([{ ...source, teamId: randomUUID() }])).toEqual({ lines: [], readTo: null });
  });
});

describeWhere(lacking.loki, 'the log store in Loki, where one team is over its limit', () => {
  const limited = randomUUID();
  let fixture: StoreFixture;
  beforeAll(async () => {
    fixture = await StoreFixture.start('loki', {
      [limited]: { ingestion_rate_mb: 0.001, ingestion_burst_size_mb: 0.001 },
    });
  });
  afterAll(() => fixture.stop());

  it('stores and saves the lines of all others, and says whose lines it did not', async () => {
    const [before, after] = [(await fixture.sources(1)) as [LogSource], (await fixture.sources(1)) as [LogSource]];
    const [over] = (await fixture.sources(1, { teamId: limited })) as [LogSource];
    const atNs = nsOfMs(Date.now());
    const long = aLine(over, atNs, 'x'.repeat(4_000));
    const groups = [
      { source: before[0], lines: [aLine(before[0], atNs, 'one')] },
      { source: over, lines: [long] },
      { source: after[0], lines: [aLine(after[0], atNs, 'another')] },
    ];
    const saved: number[][] = [];
    const save = (_: unknown, stored: readonly { source: LogSource }[]) => {
      saved.push(stored.map(({ source }) => source.no));
      return Promise.resolve(new Set(saved.flat()));
    };
    const failed = await fixture.store.append(groups, save);
    expect([...failed]).toEqual([[over.no, expect.objectContaining({ code: 'unavailable' })]]);
    expect(saved).toEqual([[before[0].no, after[0].no]]);
    expect(messagesOf((await fixture.read(before)).lines)).toEqual(['one']);
    expect(messagesOf((await fixture.read(after)).lines)).toEqual(['another']);
    await expect(fixture.store.append([{ source: over, lines: [long] }], save)).rejects.toMatchObject({
      code: 'unavailable',
    });
    expect(saved).toHaveLength(1);
  });
});
