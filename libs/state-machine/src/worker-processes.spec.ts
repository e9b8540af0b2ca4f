import { expect, it } from '@jest/globals';
import { spawnTypescript, type SpawnedProcess } from '@atoll/testing';
import { BerthEntity, eventually, Harbour } from './berth-fixture.js';

/**
 * A harbour, with workers in this process and in others. Each spec has its own, so that all wait for claims to run out
 * at the same time.
 */
class Scene {
  readonly #spawned: SpawnedProcess[] = [];
  readonly #workers: { stop(): Promise<void> }[] = [];

  private constructor(readonly harbour: Harbour) {}

  static async play(story: (scene: Scene) => Promise<void>): Promise<void> {
    const harbour = await Harbour.open();
    harbour.machine.does.dredging = async ({ ship }) => {
      await harbour.dataSource.query('INSERT INTO deed VALUES ($1, $2)', [ship, 'this process']);
      return { event: 'DREDGED' };
    };
    const scene = new Scene(harbour);
    try {
      await story(scene);
    } finally {
      await scene.end();
    }
  }

  start(name: string, behaviour: string): SpawnedProcess {
    const child = spawnTypescript(new URL('./worker-process-fixture.ts', import.meta.url), [
      this.harbour.url,
      name,
      behaviour,
    ]);
    this.#spawned.push(child);
    return child;
  }

  async spawn(name: string, behaviour: string): Promise<SpawnedProcess> {
    const child = this.start(name, behaviour);
    await said(child, 'ready');
    return child;
  }

  work(): void {
    const worker = this.harbour.worker();
    this.#workers.push(worker);
    worker.start();
  }

  deeds(): Promise<{ ship: string; by_whom: string }[]> {
    return this.harbour.dataSource.query('SELECT * FROM deed');
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

  private async end(): Promise<void> {
    for (const { kill, ended } of this.#spawned) {
      kill('SIGKILL');
      await ended;
    }
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    await this.harbour.close();
  }
}

const said = (child: SpawnedProcess, line: string) => eventually(() => child.lines.includes(line));

function story(name: string, tell: (scene: Scene) => Promise<void>): void {
  it.concurrent(name, () => Scene.play(tell));
}

story(
  'what a worker was at that is killed is taken over when its claim has run out, at most 5 s later',
  async (scene) => {
    const { harbour } = scene;
    const child = await scene.spawn('child', 'hang');
    const id = await harbour.ask('Fram');
    await said(child, 'dredging Fram');
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
    await harbour.eventuallyIn('in_use', 1);
    expect(await scene.passages(id)).toEqual([
      ['dredging', 'user:harbour-master'],
      ['in_use', 'system:harbour'],
    ]);
  },
);

story(
  'a worker that is frozen in a step loses its claim: another does the step, and the first one neither acts nor is heard afterwards',
  async (scene) => {
    const { harbour } = scene;
    const child = await scene.spawn('child', 'freeze in a step');
    const id = await harbour.ask('Fram');
    await said(child, 'dredging Fram');
    child.kill('SIGSTOP');
    scene.work();
    await harbour.eventuallyIn('in_use', 1);
    child.kill('SIGCONT');
    await said(child, 'aborted Fram');
    // It goes on with what comes next, and by then it has let go of the first.
    await harbour.ask('Vega');
    await harbour.eventuallyIn('in_use', 2);
    expect(await scene.deeds()).toContainEqual({ ship: 'Fram', by_whom: 'this process' });
    expect((await scene.deeds()).filter(({ ship }) => ship === 'Fram').length).toBe(1);
    expect(await scene.passages(id)).toEqual([
      ['dredging', 'user:harbour-master'],
      ['in_use', 'system:harbour'],
    ]);
  },
);

story(
  'a worker that is frozen while it applies a result holds its row for a few seconds, and what it wrote never happened',
  async (scene) => {
    const { harbour } = scene;
    const child = await scene.spawn('child', 'freeze while applying');
    const id = await harbour.ask('Fram');
    await said(child, 'applying Fram');
    child.kill('SIGSTOP');
    scene.work();
    await harbour.eventuallyIn('in_use', 1);
    child.kill('SIGCONT');
    await said(child, 'resumed Fram');
    expect(await scene.passages(id)).toEqual([
      ['dredging', 'user:harbour-master'],
      ['in_use', 'system:harbour'],
    ]);
  },
);

story('whenever workers are killed, every row makes its way once', async (scene) => {
  const { harbour } = scene;
  const ids = await Promise.all(Array.from({ length: 40 }, (_, at) => harbour.ask(`${at}`, `pier-${at % 12}`)));
  // Three processes, one after the other, may take longer to start than a step has in all.
  await harbour.dataSource.query(`UPDATE berth SET deadline_at = deadline_at + interval '1 hour'`);
  for (const name of ['first', 'second', 'third']) {
    // It ends while it is at some of them, and has begun a few of the others.
    const child = scene.start(name, 'killed');
    await child.ended;
  }
  scene.work();
  await harbour.eventuallyIn('in_use', 40);
  for (const id of ids) {
    expect((await scene.passages(id)).map(([state]) => state)).toEqual(['dredging', 'in_use']);
    expect(await harbour.read(id)).toMatchObject({ revision: 1, claimToken: null, claimedUntil: null });
  }
  expect(await harbour.dataSource.manager.countBy(BerthEntity, { state: 'in_use' })).toBe(40);
});
