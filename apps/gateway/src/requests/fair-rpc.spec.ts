import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { vms } from '@atoll/contracts/pods';
import { teams } from '@atoll/contracts/teams';
import type { CallContext } from '@atoll/contracts';
import { newId } from '@atoll/database';
import type { Rpc } from '@atoll/rpc';
import { contextOf, memberOf, timeoutFactor } from '@atoll/testing';
import { defaultLimits } from '../rate-limits/limits.js';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { aTeam } from '../testing/team-fixture.js';
import { FairRpc } from './fair-rpc.js';

let gateway: GatewayUnderTest;
/** Names of the teams that are asked for at this moment, in the order in which they were. */
let asked: string[];
let answers: (() => void)[];

async function start(deadlineMs = 600_000): Promise<void> {
  const off = { count: 999_999_999, seconds: 1 };
  gateway = await startGateway({ limits: { key: { ...off, burst: off.count }, team: off, admin: off }, deadlineMs });
  gateway.services.answer(teams.get, async ({ team_id }) => {
    asked.push(team_id);
    await new Promise<void>((resolve) => answers.push(resolve));
    return aTeam({ id: team_id });
  });
}
beforeEach(() => {
  [asked, answers] = [[], []];
});
afterEach(async () => {
  jest.useRealTimers();
  release();
  await gateway.close();
});

const release = () => answers.splice(0).forEach((answer) => answer());
const until = async (holds: () => boolean) => {
  while (!holds()) await delay(5);
};
const rolesIn = (...ids: string[]) =>
  ids.map((team_id) => ({ team_id, role: 'viewer' as const, lacks_second_factor: false }));
const keyTo = (team: string) => gateway.services.key({ user_id: newId(), scope: 'membership', teams: rolesIn(team) });
const keyOfUser = (...ids: string[]) => gateway.services.key({ user_id: newId(), teams: rolesIn(...ids) });
const call = (key: string, team: string) => gateway.call('GET', `/api/team/${team}`, { key });
const get = async (key: string, team: string) => (await call(key, team)).status;
const told = ({ status, headers, body }: Awaited<ReturnType<typeof call>>) => [
  status,
  headers['retry-after'],
  body.code,
];

/** Twenty calls of a team at once, with keys of nine members and of a user. */
function flood(team: string): ReturnType<typeof call>[] {
  const keys = [...Array.from({ length: 9 }, () => keyTo(team)), keyOfUser(team)];
  return keys.flatMap((key) => [1, 2].map(() => call(key, team)));
}

/** The way to services that answer when the spec lets them; the teams that were asked for, in that order. */
function held(): { fair: FairRpc; begun: string[] } {
  const begun: string[] = [];
  const direct = {
    call: (_operation: unknown, { team_id }: { team_id: string }) => {
      begun.push(team_id);
      return new Promise<void>((resolve) => answers.push(resolve));
    },
  } as unknown as Rpc;
  return { fair: new FairRpc(direct, { limits: defaultLimits }), begun };
}

describe('calls of one team', () => {
  it('are under way six at a time to one service, whoever of it calls; those to another, of other teams, of who is in several, and of the operator do not wait for them', async () => {
    await start();
    const [busy, quiet] = [newId(), newId()];
    const flooding = flood(busy);
    await until(() => asked.length >= 6);
    const operator = Array<string>(7).fill(gateway.services.key({ platform_admin: true }));
    gateway.services.answer(vms.list, () => ({ data: [], pagination: { page: 1, limit: 20, total: 0 } }));
    expect((await gateway.call('GET', `/api/vm?team_id=${busy}`, { key: keyTo(busy) })).status).toBe(200);
    const others = [keyTo(quiet), keyOfUser(busy, quiet), ...operator].map((key) => get(key, quiet));
    await until(() => asked.length === 6 + 9);
    expect(asked).toEqual([...Array<string>(6).fill(busy), ...Array<string>(9).fill(quiet)]);
    release();
    await until(() => asked.length === 6 + 9 + 6);
    release();
    await until(() => asked.length === 6 + 9 + 12);
    release();
    await until(() => asked.length === 6 + 9 + 14);
    release();
    expect(new Set((await Promise.all(flooding)).map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(await Promise.all(others))).toEqual(new Set([200]));
  });

  it('leave their place where they fail, and take none where the input is refused', async () => {
    await start();
    const [busy, key] = [newId(), keyOfUser()];
    expect(await Promise.all(Array.from({ length: 30 }, () => get(key, 'no-id')))).toEqual(Array(30).fill(400));
    gateway.services.stop(teams.get);
    expect(await Promise.all(Array.from({ length: 30 }, () => get(keyTo(busy), busy)))).toEqual(Array(30).fill(503));
  });

  it('that have waited for half of their deadline are told 503 where none of the others was answered: the service hangs', async () => {
    await start(8_000 * timeoutFactor);
    const flooding = flood(newId());
    const refused: ReturnType<typeof told>[] = [];
    for (const each of flooding) void each.then((answer) => answer.status === 200 || refused.push(told(answer)));
    await until(() => refused.length === 14);
    expect(refused).toEqual(Array(14).fill([503, '2', 'unavailable']));
    expect(asked).toHaveLength(6);
    release();
    expect((await Promise.all(flooding)).filter(({ status }) => status === 200)).toHaveLength(6);
  });

  it('that have waited so long are refused with 429 and a time to come again where others are answered meanwhile', async () => {
    await start(6_000 * timeoutFactor);
    const busy = newId();
    const slowly = setInterval(() => answers.shift()?.(), 150 * timeoutFactor);
    const answered = (await Promise.all([...flood(busy), ...flood(busy)])).map(told);
    expect(new Set(answered.map(String))).toEqual(new Set(['200,,', '429,1,too_many_requests']));
    clearInterval(slowly);
  });

  it('of a request that has begun are refused by no wait within its deadline', async () => {
    await start();
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] });
    const direct = { call: () => new Promise<void>((resolve) => answers.push(resolve)) } as unknown as Rpc;
    const fair = new FairRpc(direct, { limits: defaultLimits });
    const team = newId();
    const refused: string[] = [];
    const begin = (): CallContext => ({ ...contextOf(memberOf(team)), deadlineAtMs: Date.now() + 10_000 });
    const ask = (name: string, context = begin()) =>
      void fair.call(teams.get, { team_id: name }, context).catch(() => refused.push(name));
    const ours = begin();
    ask('ours', ours);
    for (let count = 0; count < 5; count += 1) ask('before');
    ask('another');
    ask('the next of ours', ours);
    await jest.advanceTimersByTimeAsync(9_999);
    expect(refused).toEqual(['another']);
    jest.useRealTimers();
  });

  it('of one request wait once: what it has begun it can end or undo before others begin, and beside no more than six', async () => {
    await start();
    const { fair, begun } = held();
    const team = newId();
    const begin = (): CallContext => ({ ...contextOf(memberOf(team)), deadlineAtMs: Date.now() + 600_000 });
    const ask = (team_id: string, context: CallContext) => void fair.call(teams.get, { team_id }, context);
    for (let count = 0; count < 6; count += 1) ask('before', begin());
    const ours = begin();
    ask('ours', ours);
    for (let count = 0; count < 6; count += 1) ask('after', begin());
    ask('ours', { ...ours, traceparent: 'another part of it' });
    ask('ours', ours);
    expect(begun).toHaveLength(6);
    for (let count = 0; count < 4; count += 1) {
      answers[count]?.();
      await until(() => begun.length === 7 + count);
    }
    expect(begun.slice(6)).toEqual(['ours', 'ours', 'ours', 'after']);
  });
});

it('by keys of people whom one user invited, in whatever teams, are under way six at a time; the teams themselves do not wait for them', async () => {
  await start();
  const { fair, begun } = held();
  const ask = (teamId: string, heldBy?: string) => {
    const caller = { ...memberOf(teamId), ...(heldBy !== undefined && { heldBy }) };
    const context = { ...contextOf(caller), deadlineAtMs: Date.now() + 600_000 * timeoutFactor };
    void fair.call(teams.get, { team_id: teamId }, context);
  };
  const ids = Array.from({ length: 20 }, () => newId());
  const [first = ''] = ids;
  for (const id of ids) ask(id, 'one');
  expect(begun).toEqual(ids.slice(0, 6));
  ask(first, 'another');
  ask(first);
  expect(begun.slice(6)).toEqual([first, first]);
  await until(() => {
    release();
    return begun.length === 22;
  });
});

it('by keys of one user to 60 teams are under way six in the lane of one team and six in that of all other keys; neither others of these teams nor the user’s sessions wait for them, and a user who was served begins anew', async () => {
  await start();
  const { fair, begun } = held();
  const ask = (teamId: string, userId: string) => {
    const context = { ...contextOf({ ...memberOf(teamId), userId }), deadlineAtMs: Date.now() + 600_000 };
    void fair.call(teams.get, { team_id: teamId }, context);
  };
  const [one, ids] = [newId(), Array.from({ length: 60 }, () => newId())];
  const [first = '', second = ''] = ids;
  for (let count = 0; count < 7; count += 1) for (const id of ids) ask(id, one);
  expect(begun).toHaveLength(12);
  expect(begun.filter((id) => id === first)).toHaveLength(6);
  ask(first, newId());
  ask(second, newId());
  expect(begun.slice(12)).toEqual([second]);
  const memberships = [first, second].flatMap((id) => memberOf(id).teams ?? []);
  const session = { ...contextOf({ userId: one, teams: memberships }), deadlineAtMs: Date.now() + 600_000 };
  void fair.call(teams.get, { team_id: 'by a session' }, session);
  expect(begun.slice(13)).toEqual(['by a session']);
  await until(() => {
    release();
    return begun.length === 7 * 60 + 3;
  });
  release();
  await delay(0);
  for (let count = 0; count < 7; count += 1) ask(second, one);
  expect(begun.slice(7 * 60 + 3)).toEqual(Array(6).fill(second));
});

it('of all teams 300 calls are under way at once to one service; a team that has none goes next, and is told 503 where the others keep it waiting', async () => {
  await start();
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance'] });
  const { fair, begun } = held();
  const refused: [string, unknown][] = [];
  const ask = (team: string, operation: typeof teams.get | typeof vms.list = teams.get) =>
    fair
      .call(
        operation as typeof teams.get,
        { team_id: team },
        {
          ...contextOf(memberOf(team)),
          deadlineAtMs: Date.now() + 10_000,
        },
      )
      .catch((error: unknown) => refused.push([team, String(error)]));
  // Each of another member.
  const many = Array.from({ length: 50 }, () => newId());
  for (const team of many) for (let count = 0; count < 7; count += 1) void ask(team);
  expect(begun).toHaveLength(300);
  const quiet = newId();
  void ask(quiet);
  void ask(many[0] ?? '', vms.list);
  expect(begun.slice(300)).toEqual([many[0]]);
  answers[0]?.();
  await jest.advanceTimersByTimeAsync(0);
  expect(begun.slice(301)).toEqual([quiet]);
  const late = newId();
  void ask(late);
  await jest.advanceTimersByTimeAsync(5_000);
  expect(refused.filter(([team]) => team === late)).toEqual([
    [late, expect.stringContaining('Too many requests are being processed.')],
  ]);
  jest.useRealTimers();
});
