import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { spawnTypescript, type SpawnedProcess } from '@atoll/testing';
import { BerthEntity, eventually, Harbour } from './berth-fixture.js';

/** A harbour, with workers in this process and in others. */
class Scene {
  readonly #spawned: SpawnedProcess[] = [];
  readonly #workers: { stop(): Promise<void> }[] = [];

  private constructor(readonly harbour: Harbour) {}

  static async open(): Promise<Scene> {
    const harbour = await Harbour.open();
    harbour.machine.does.dredging = async ({ ship }) => {
      await harbour.dataSource.query('INSERT INTO deed VALUES ($1, $2)', [ship, 'this process']);
      return { event: 'DREDGED' };
    };
    return new Scene(harbour);
  }

  spawn(name: string, ...options: string[]): SpawnedProcess {
    const fixture = new URL('./worker-process-fixture.ts', import.meta.url);
    const child = spawnTypescript(fixture, [this.harbour.url, name, ...options]);
    this.#spawned.push(child);
    return child;
  }

  work(): void {
    const worker = this.harbour.worker({ pollMs: 100 });
    this.#workers.push(worker);
    worker.start();
  }

  async rest(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.stop()));
  }

  deeds(): Promise<{ ship: string; by_whom: string }[]> {
    return this.harbour.dataSource.query('SELECT * FROM deed');
  }

  async inUse(id: string): Promise<void> {
    await eventually(async () => (await this.harbour.read(id)).state === 'in_use');
  }

  async passages(id: string): Promise<(string | null)[][]> {
    return (await this.harbour.history(id)).map(({ toState, actor }) => [toState, actor]);
  }

  async secondsLeft(id: string): Promise<number> {
    const [row] = await this.harbour.dataSource.query<{ left: number }[]>(
      'SELECT extract(epoch FROM claimed_until - clock_timestamp())::float8 AS left FROM berth WHERE berth_id = $1',
      [id],
    );
    return row?.left ?? NaN;
  }

  async close(): Promise<void> {
    for (const { kill, ended } of this.#spawned) {
      kill('SIGKILL');
      await ended;
    }
    await this.rest();
    await this.harbour.close();
  }
}

const said = (child: SpawnedProcess, line: string) => eventually(() => child.lines.includes(line));

/** What it does depends on the ship: see its file. The last of these specs kills it. */
describe('a worker in a process of its own', () => {
  let scene: Scene;
  let child: SpawnedProcess;
  beforeAll(async () => {
    scene = await Scene.open();
    child = scene.spawn('child');
    await said(child, 'ready');
  });
  afterEach(() => {
    // One that was left frozen would keep all others waiting.
    child.kill('SIGCONT');
    return scene.rest();
  });
  afterAll(() => scene.close());

  it('that is frozen in a step loses its claim: another does the step, and the first one neither acts nor is heard afterwards', async () => {
    const id = await scene.harbour.ask('Fram');
    await said(child, 'dredging Fram');
    child.kill('SIGSTOP');
    scene.work();
    await scene.inUse(id);
    child.kill('SIGCONT');
    await said(child, 'aborted Fram');
    // It goes on with what comes next, and by then it has let go of the first.
    await scene.inUse(await scene.harbour.ask('Vega'));
    expect(await scene.deeds()).toContainEqual({ ship: 'Fram', by_whom: 'this process' });
    expect((await scene.deeds()).filter(({ ship }) => ship === 'Fram').length).toBe(1);
    expect(await scene.passages(id)).toEqual([
      ['dredging', 'user:harbour-master'],
      ['in_use', 'system:harbour'],
    ]);
  });

  it('that is frozen while it applies a result holds its row for a few seconds, and what it wrote never happened', async () => {
    const id = await scene.harbour.ask('Maud');
    await said(child, 'applying Maud');
    child.kill('SIGSTOP');
    scene.work();
    await scene.inUse(id);
    child.kill('SIGCONT');
    await said(child, 'resumed Maud');
    expect(await scene.passages(id)).toEqual([
      ['dredging', 'user:harbour-master'],
      ['in_use', 'system:harbour'],
    ]);
  });

  it('that is killed is followed by another when its claim has run out, at most 5 s later', async () => {
    const { harbour } = scene;
    const id = await harbour.ask('Belgica');
    await said(child, 'dredging Belgica');
    // As long as it lives it keeps what it is at: one claim is extended. A frozen machine may cost it one; it makes
    // another.
    let last = await harbour.read(id);
    await eventually(async () => {
      const [before, now] = [last, (last = await harbour.read(id))];
      return (
        now.claimToken === before.claimToken &&
        (now.claimedUntil?.getTime() ?? 0) > (before.claimedUntil?.getTime() ?? Infinity)
      );
    });
    child.kill('SIGKILL');
    await child.ended;
    expect(await scene.secondsLeft(id)).toBeLessThanOrEqual(5);
    scene.work();
    await scene.inUse(id);
    expect(await scene.passages(id)).toEqual([
      ['dredging', 'user:harbour-master'],
      ['in_use', 'system:harbour'],
    ]);
  });
});

it('whenever workers are killed, every row makes its way once', async () => {
  const scene = await Scene.open();
  try {
    const { harbour } = scene;
    const ids = await Promise.all(Array.from({ length: 40 }, (_, at) => harbour.ask(`${at}`, `pier-${at % 12}`)));
    // Two processes, one after the other, may take longer to start than a step has in all.
    await harbour.dataSource.query(`UPDATE berth SET deadline_at = deadline_at + interval '1 hour'`);
    // Each ends while it is at some of them, and has begun a few of the others.
    for (const name of ['first', 'second']) await scene.spawn(name, 'killed').ended;
    scene.work();
    await harbour.eventuallyIn('in_use', 40);
    for (const id of ids) {
      expect((await scene.passages(id)).map(([state]) => state)).toEqual(['dredging', 'in_use']);
      expect(await harbour.read(id)).toMatchObject({ revision: 1, claimToken: null, claimedUntil: null });
    }
    expect(await harbour.dataSource.manager.countBy(BerthEntity, { state: 'in_use' })).toBe(40);
  } finally {
    await scene.close();
  }
});
