import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { UserCaller } from '@atoll/contracts';
import type { PodLogPage, ReadPodLogs } from '@atoll/contracts/pods';
import { memberOf, operator } from '@atoll/testing';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { LogStore } from './log-store.js';
import { LogsFixture, type WrittenPod } from './logs-fixture.js';

const messagesOf = ({ data }: PodLogPage) => data.map(({ message }) => message);

describe('reading logs of pods', () => {
  let fixture: LogsFixture;
  beforeAll(async () => {
    fixture = await LogsFixture.start();
  });
  afterAll(() => fixture.stop());

  /** A pod of a team that has written these lines, one a second, the last one 10 s ago. */
  async function podThatWrote(
    teamId: string,
    messages: readonly string[],
    options: { gpuaasId?: string } = {},
  ): Promise<WrittenPod> {
    const pod = await fixture.pod(teamId, options);
    const startMs = Date.now() - 10_000 - messages.length * 1000;
    for (const [at, message] of messages.entries())
      fixture.write(pod.podId, [message], { at: new Date(startMs + at * 1000) });
    await fixture.endRun(pod.podId, 1);
    await fixture.collector.collect();
    await fixture.collector.idle();
    return pod;
  }

  async function allPages(asked: ReadPodLogs, caller: Partial<UserCaller>): Promise<string[]> {
    const messages: string[] = [];
    for (let { cursor } = asked; ;) {
      const page = await fixture.logs({ ...asked, ...(cursor !== undefined && { cursor }) }, caller);
      messages.push(...messagesOf(page));
      if (page.next_cursor === null || (asked.order === 'asc' && page.data.length === 0)) return messages;
      cursor = page.next_cursor;
    }
  }

  it('gives the newest lines of the team first, with their pod, and pages on to the oldest', async () => {
    const teamId = fixture.team();
    const pod = await podThatWrote(teamId, ['one', 'two', 'three']);
    const page = await fixture.logs({ team_id: teamId, limit: 2 }, memberOf(teamId, 'member'));
    expect(page.data).toEqual([
      {
        timestamp: expect.stringMatching(/Z$/),
        pod_name: pod.podName,
        container: 'main',
        stream: 'stdout',
        message: 'three',
        gpuaas_id: '1',
      },
      expect.objectContaining({ message: 'two' }),
    ]);
    expect(await allPages({ limit: 2 }, memberOf(teamId))).toEqual(['three', 'two', 'one']);
  });

  it.each(['asc', 'desc'] as const)(
    'gives no lines since an instant that has not come, however late (%s)',
    async (order) => {
      const teamId = fixture.team();
      await podThatWrote(teamId, ['one']);
      for (const since of ['2300-01-01T00:00:00Z', '9999-12-31T23:59:59-14:00'])
        expect(messagesOf(await fixture.logs({ since, order }, memberOf(teamId)))).toEqual([]);
    },
  );

  it('gives the lines of each of the caller’s teams, in one order, and of no other', async () => {
    const [one, other, foreign] = [fixture.team(), fixture.team(), fixture.team()];
    await podThatWrote(one, ['a', 'b', 'c', 'd', 'e']);
    await podThatWrote(other, ['1', '2', '3']);
    await podThatWrote(foreign, ['secret']);
    const caller: Partial<UserCaller> = {
      teams: [one, other].map((teamId) => ({ teamId, role: 'member' })),
    };
    const inOrder = await allPages({ order: 'asc', limit: 3 }, caller);
    expect(inOrder).toHaveLength(8);
    expect(inOrder.filter((message) => 'abcde'.includes(message))).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(await allPages({ limit: 3 }, caller)).toEqual(inOrder.toReversed());
    const viewerOfOne: Partial<UserCaller> = {
      teams: [
        { teamId: one, role: 'viewer' },
        { teamId: other, role: 'team_admin' },
      ],
    };
    expect(await allPages({}, viewerOfOne)).toEqual(['3', '2', '1']);
  });

  it('filters by pod, GPU service and range', async () => {
    const teamId = fixture.team();
    const [here, there] = [
      await podThatWrote(teamId, ['here']),
      await podThatWrote(teamId, ['there'], { gpuaasId: '2' }),
    ];
    const read = (asked: ReadPodLogs) => allPages(asked, memberOf(teamId));
    expect(await read({ pod_name: here.podName })).toEqual(['here']);
    expect(await read({ gpuaas_id: '2' })).toEqual(['there']);
    expect(await read({ gpuaas_id: '2', pod_name: there.podName })).toEqual(['there']);
    expect(await read({ gpuaas_id: '1', pod_name: there.podName })).toEqual([]);
    expect(await read({ gpuaas_id: '3' })).toEqual([]);
    expect(await read({ since: new Date(Date.now() - 1000).toISOString() })).toEqual([]);
    expect(await read({ until: new Date(Date.now() - 600_000).toISOString() })).toEqual([]);
  });

  it('finds text letter for letter', async () => {
    const teamId = fixture.team();
    await podThatWrote(teamId, ['100% done', '100 percent', 'loss=.5', 'loss=x5']);
    const find = (search: string) => allPages({ search, limit: 1 }, memberOf(teamId));
    expect(await find('0%')).toEqual(['100% done']);
    expect(await find('=.5')).toEqual(['loss=.5']);
    expect(await find('loss')).toEqual(['loss=x5', 'loss=.5']);
  });

  it('keeps lines when their pod is gone', async () => {
    const teamId = fixture.team();
    const pod = await podThatWrote(teamId, ['last words']);
    fixture.engines.remove(pod.podId, 1);
    await fixture.query('DELETE FROM pod_run WHERE pod_id = $1', [pod.podId]);
    await fixture.query(`UPDATE pod SET state = 'deleted' WHERE pod_id = $1`, [pod.podId]);
    expect(await allPages({ pod_name: pod.podName }, memberOf(teamId))).toEqual(['last words']);
  });

  it('follows a pod: the last page of asc has a cursor, which is asked again, also before the first line', async () => {
    const pod = await fixture.pod(fixture.team());
    const caller = memberOf(pod.teamId);
    const follow = async (cursor: string | null) =>
      fixture.logs({ pod_name: pod.podName, order: 'asc', limit: 2, ...(cursor !== null && { cursor }) }, caller);
    const empty = await follow(null);
    expect(empty.data).toEqual([]);
    fixture.write(pod.podId, ['one', 'two', 'three']);
    await fixture.collector.collect();
    while ((await fixture.messages(pod)).length < 3) await delay(5);
    const first = await follow(empty.next_cursor);
    const second = await follow(first.next_cursor);
    const third = await follow(second.next_cursor);
    expect([first, second, third].map(messagesOf)).toEqual([['one', 'two'], ['three'], []]);
    fixture.write(pod.podId, ['four']);
    while ((await fixture.messages(pod)).length < 4) await delay(5);
    expect(messagesOf(await follow(third.next_cursor))).toEqual(['four']);
    await fixture.endRun(pod.podId, 1);
  });

  describe('follows a pod of whose two sources one is stored later:', () => {
    /** As the transaction that writes the line would, some seconds ago. */
    const platformWrites = ({ podId }: WrittenPod, message: string, secondsAgo: number) =>
      fixture.query(
        'INSERT INTO platform_line (pod_id, message, at) VALUES ($1, $2, now() - make_interval(secs => $3))',
        [podId, message, secondsAgo],
      );
    const containerWrites = ({ podId }: WrittenPod, message: string, secondsAgo: number) =>
      fixture.write(podId, [message], { at: new Date(Date.now() - secondsAgo * 1000) });
    const stored = async (pod: WrittenPod, lines: number) => {
      await fixture.collector.collect();
      while ((await fixture.messages(pod)).length < lines) await delay(5);
    };
    const follow = (pod: WrittenPod, cursor: string | null, asked: ReadPodLogs = {}) =>
      fixture.logs(
        { pod_name: pod.podName, order: 'asc', ...asked, ...(cursor !== null && { cursor }) },
        memberOf(pod.teamId),
      );

    it.each(['', 'i'])(
      'a line of the platform that comes after a later one of the container is shown, search %j',
      async (search) => {
        const pod = await fixture.pod(fixture.team());
        const asked = search === '' ? {} : { search };
        containerWrites(pod, 'an early line', 60);
        containerWrites(pod, 'a later line', 20);
        await stored(pod, 2);
        const first = await follow(pod, null, asked);
        await platformWrites(pod, 'The pod is stopped in 5 min.', 40);
        await stored(pod, 3);
        const second = await follow(pod, first.next_cursor, asked);
        const third = await follow(pod, second.next_cursor, asked);
        expect([first, second, third].map(messagesOf)).toEqual([
          ['an early line', 'a later line'],
          ['The pod is stopped in 5 min.'],
          [],
        ]);
        // Who is at the end is sent back to where they are.
        expect(third.next_cursor).toBe(second.next_cursor);
        await fixture.endRun(pod.podId, 1);
      },
    );

    it('lines of a container whose cluster was away are shown after one of the platform', async () => {
      const pod = await fixture.pod(fixture.team());
      await platformWrites(pod, 'The pod is stopped in 5 min.', 20);
      await stored(pod, 1);
      const first = await follow(pod, null);
      containerWrites(pod, 'what was written meanwhile', 40);
      await stored(pod, 2);
      expect([first, await follow(pod, first.next_cursor)].map(messagesOf)).toEqual([
        ['The pod is stopped in 5 min.'],
        ['what was written meanwhile'],
      ]);
      await fixture.endRun(pod.podId, 1);
    });

    it('what is stored is paged through in one order, also from a cursor with one position for both, as it was before', async () => {
      const pod = await fixture.pod(fixture.team());
      for (const at of [60, 50, 40, 30, 20]) containerWrites(pod, `container ${at}`, at);
      for (const at of [55, 45, 35]) await platformWrites(pod, `platform ${at}`, at);
      await stored(pod, 8);
      const inOrder = [60, 55, 50, 45, 40, 35, 30, 20].map((at) => `${at % 10 === 0 ? 'container' : 'platform'} ${at}`);
      const caller = memberOf(pod.teamId);
      for (const limit of [1, 2, 3])
        expect(await allPages({ pod_name: pod.podName, order: 'asc', limit }, caller)).toEqual(inOrder);
      const lines = await fixture.query<{ at_ns: string; source_no: number }>(
        `SELECT at_ns::text, source_no FROM log_line JOIN log_source ON no = source_no WHERE pod_id = $1 ORDER BY at_ns`,
        [pod.podId],
      );
      for (const [at, { at_ns, source_no }] of lines.entries()) {
        const cursor = Buffer.from(`asc.${at_ns}.${source_no}`).toString('base64url');
        expect(await allPages({ pod_name: pod.podName, order: 'asc', limit: 2, cursor }, caller)).toEqual(
          inOrder.slice(at + 1),
        );
      }
      await fixture.endRun(pod.podId, 1);
    });
  });

  it('shows a follower of several pods only what is settled by the clock of the database, so that a pod that is read later is not passed', async () => {
    const teamId = fixture.team();
    const [early, late] = [await fixture.pod(teamId), await fixture.pod(teamId)];
    // Ahead of the clock, so that it is not settled yet however long this takes.
    fixture.write(early.podId, ['early'], { at: new Date(Date.now() + 60_000) });
    await fixture.endRun(early.podId, 1);
    await fixture.endRun(late.podId, 1);
    await fixture.collector.collect();
    await fixture.collector.idle();
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_000);
    expect((await fixture.logs({ team_id: teamId, order: 'asc' }, memberOf(teamId))).data).toEqual([]);
    clock.mockRestore();
    expect(messagesOf(await fixture.logs({ team_id: teamId }, memberOf(teamId)))).toEqual(['early']);
  });

  it('runs two searches of a team at once and six in all, and everything else beside them', async () => {
    const teamIds = Array.from({ length: 4 }, () => fixture.team());
    for (const teamId of teamIds) await podThatWrote(teamId, ['found']);
    const store = fixture.get(LogStore);
    const read = store.read.bind(store);
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let held = 0;
    store.read = async (query) => {
      if (query.search !== null) {
        held += 1;
        await released;
      }
      return read(query);
    };
    const search = (teamId: string) => fixture.logs({ search: 'found', team_id: teamId }, memberOf(teamId));
    const running = teamIds.slice(0, 3).flatMap((teamId) => [search(teamId), search(teamId)]);
    while (held < 6) await delay(5);
    running.push(search(teamIds[3]!));
    expect(messagesOf(await fixture.logs({ team_id: teamIds[3]! }, memberOf(teamIds[3]!)))).toEqual(['found']);
    expect(held).toBe(6);
    release();
    expect((await Promise.all(running)).map(messagesOf)).toEqual(Array.from({ length: 7 }, () => ['found']));
    store.read = read;
  });

  describe('refuses', () => {
    it('another team’s pods, in the words for what does not exist', async () => {
      const [ours, theirs] = [fixture.team(), fixture.team()];
      const pod = await podThatWrote(theirs, ['secret']);
      const read = (asked: ReadPodLogs) => fixture.logs(asked, memberOf(ours)).catch((error: unknown) => error);
      const unknown = await read({ pod_name: 'no-such-pod' });
      expect(unknown).toMatchObject({ code: 'not_found' });
      expect(await read({ pod_name: pod.podName })).toEqual(unknown);
      expect(await read({ pod_name: pod.podName, team_id: ours })).toEqual(unknown);
      expect(await read({ team_id: theirs })).toEqual(await read({ team_id: randomUUID() }));
    });

    it('a pod that is looked for in another of the caller’s teams', async () => {
      const [one, other] = [fixture.team(), fixture.team()];
      const { podName } = await podThatWrote(one, ['x']);
      const teams = [one, other].map((teamId) => ({ teamId, role: 'member' as const }));
      const read = (team_id: string) =>
        fixture.logs({ pod_name: podName, team_id }, { ...memberOf(one), scope: 'user', teams });
      expect(messagesOf(await read(one))).toEqual(['x']);
      await expect(read(other)).rejects.toMatchObject({ code: 'not_found' });
    });

    it('those who lack the second factor that the team requires, and what they have elsewhere is read', async () => {
      const [teamId, elsewhere] = [fixture.team(), fixture.team()];
      await podThatWrote(teamId, ['x']);
      await podThatWrote(elsewhere, ['y']);
      const lacking = { teamId, role: 'member' as const, lacksSecondFactor: true };
      const by = (...teams: UserCaller['teams']) => fixture.logs({}, { ...memberOf(teamId), scope: 'user', teams });
      await expect(by(lacking)).rejects.toMatchObject({ code: 'forbidden' });
      expect(messagesOf(await by(lacking, { teamId: elsewhere, role: 'member' }))).toEqual(['y']);
    });

    it('roles that may not use pods', async () => {
      const teamId = fixture.team();
      const pod = await podThatWrote(teamId, ['x']);
      for (const asked of [{}, { team_id: teamId }, { pod_name: pod.podName }]) {
        await expect(fixture.logs(asked, memberOf(teamId, 'viewer'))).rejects.toMatchObject({ code: 'forbidden' });
      }
    });

    it('a platform_admin who names neither team nor pod', async () => {
      const teamId = fixture.team();
      const pod = await podThatWrote(teamId, ['x']);
      await expect(fixture.logs({}, operator)).rejects.toMatchObject({
        code: 'invalid_input',
        details: { errors: [{ path: 'team_id' }] },
      });
      expect(messagesOf(await fixture.logs({ team_id: teamId }, operator))).toEqual(['x']);
      expect(messagesOf(await fixture.logs({ pod_name: pod.podName }, operator))).toEqual(['x']);
    });

    it.each([
      [{ cursor: 'nonsense' }, 'cursor'],
      [{ cursor: Buffer.from('asc.1.1').toString('base64url') }, 'cursor'],
      [{ cursor: `${Buffer.from('desc.1.1').toString('base64url')}=` }, 'cursor'],
      [{ cursor: Buffer.from(`desc.${'9'.repeat(19)}.1`).toString('base64url') }, 'cursor'],
      [{ since: '2026-10-01T00:00:00Z', until: '2026-10-01T00:00:00Z' }, 'until'],
    ] as [ReadPodLogs, string][])('%j', async (asked, path) => {
      const teamId = fixture.team();
      await expect(fixture.logs(asked, memberOf(teamId))).rejects.toMatchObject({
        code: 'invalid_input',
        details: { errors: [{ path }] },
      });
    });
  });
});
