import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { spawnTypescript, type SpawnedProcess } from '@atoll/testing';
import { BerthEntity, eventually, Harbour } from './berth-fixture.js';
import type { MachineWorker } from './machine-worker.js';

// A process takes seconds to start on a busy machine.
jest.setTimeout(120_000);

let harbour: Harbour;
const spawned: SpawnedProcess[] = [];
const workers: MachineWorker<never, never, never>[] = [];
beforeEach(async () => {
  harbour = await Harbour.open();
  harbour.machine.does.dredging = async ({ ship }) => {
    await harbour.dataSource.query('INSERT INTO deed VALUES ($1, $2)', [ship, 'this process']);
    return { event: 'DREDGED' };
  };
});
afterEach(async () => {
  for (const { kill, ended } of spawned.splice(0)) {
    kill('SIGKILL');
    await ended;
  }
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  await harbour.close();
});

async function spawn(name: string, behaviour: string): Promise<SpawnedProcess> {
  const child = spawnTypescript(new URL('./worker-process-fixture.ts', import.meta.url), [harbour.url, name, behaviour]);
  spawned.push(child);
  await eventually(() => child.lines.includes('ready'));
  return child;
}

function work(): void {
  const worker = harbour.worker();
  workers.push(worker as never);
  worker.start();
}

const said = (child: SpawnedProcess, line: string) => eventually(() => child.lines.includes(line));
const deeds = () => harbour.dataSource.query<{ ship: string; by_whom: string }[]>('SELECT * FROM deed');
const passages = async (id: string) => (await harbour.history(id)).map(({ toState, actor }) => [toState, actor]);
const secondsLeft = async (id: string) => {
  const [row] = await harbour.dataSource.query<{ left: number }[]>(
    'SELECT extract(epoch FROM claimed_until - clock_timestamp())::float8 AS left FROM berth WHERE berth_id = $1',
    [id],
  );
  return row?.left ?? NaN;
};

it('what a worker was at that is killed is taken over when its claim has run out, at most 5 s later', async () => {
  const child = await spawn('child', 'hang');
  const id = await harbour.ask('Fram');
  await said(child, 'dredging Fram');
  // As long as it lives it keeps what it is at.
  const { claimToken, claimedUntil } = await harbour.read(id);
  await eventually(async () => ((await harbour.read(id)).claimedUntil?.getTime() ?? 0) > (claimedUntil?.getTime() ?? Infinity));
  expect((await harbour.read(id)).claimToken).toBe(claimToken);
  child.kill('SIGKILL');
  await child.ended;
  expect(await secondsLeft(id)).toBeLessThanOrEqual(5);
  work();
  await harbour.eventuallyIn('in_use', 1);
  expect(await passages(id)).toEqual([
    ['dredging', 'user:harbour-master'],
    ['in_use', 'system:harbour'],
  ]);
});

it('a worker that is frozen in a step loses its claim: another does the step, and the first one neither acts nor is heard afterwards', async () => {
  const child = await spawn('child', 'freeze in a step');
  const id = await harbour.ask('Fram');
  await said(child, 'dredging Fram');
  child.kill('SIGSTOP');
  work();
  await harbour.eventuallyIn('in_use', 1);
  child.kill('SIGCONT');
  await said(child, 'aborted Fram');
  // It goes on with what comes next, and by then it has let go of the first.
  await harbour.ask('Vega');
  await harbour.eventuallyIn('in_use', 2);
  expect(await deeds()).toContainEqual({ ship: 'Fram', by_whom: 'this process' });
  expect((await deeds()).filter(({ ship }) => ship === 'Fram').length).toBe(1);
  expect(await passages(id)).toEqual([
    ['dredging', 'user:harbour-master'],
    ['in_use', 'system:harbour'],
  ]);
});

it('a worker that is frozen while it applies a result holds its row for a few seconds, and what it wrote never happened', async () => {
  const child = await spawn('child', 'freeze while applying');
  const id = await harbour.ask('Fram');
  await said(child, 'applying Fram');
  child.kill('SIGSTOP');
  work();
  await harbour.eventuallyIn('in_use', 1);
  child.kill('SIGCONT');
  await said(child, 'resumed Fram');
  expect(await passages(id)).toEqual([
    ['dredging', 'user:harbour-master'],
    ['in_use', 'system:harbour'],
  ]);
});

it('whenever workers are killed, every row makes its way once', async () => {
  const ids = await Promise.all(Array.from({ length: 40 }, (_, at) => harbour.ask(`${at}`, `pier-${at % 12}`)));
  for (const name of ['first', 'second', 'third']) {
    const child = await spawn(name, 'random');
    await eventually(() => child.lines.filter((line) => line.startsWith('dredging')).length >= 5 + Math.random() * 5);
    child.kill('SIGKILL');
    await child.ended;
  }
  work();
  await harbour.eventuallyIn('in_use', 40);
  for (const id of ids) {
    expect((await passages(id)).map(([state]) => state)).toEqual(['dredging', 'in_use']);
    expect(await harbour.read(id)).toMatchObject({ revision: 1, claimToken: null, claimedUntil: null });
  }
  expect(await harbour.dataSource.manager.countBy(BerthEntity, { state: 'in_use' })).toBe(40);
});
