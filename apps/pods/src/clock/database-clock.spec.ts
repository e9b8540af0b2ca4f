import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { vms } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { onOtherClock } from '@atoll/testing';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { IdleWatch } from '../watch/idle-watch.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start({ restartMs: 300_000 });
  team = await fixture.team('member', 10);
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
});
afterAll(() => fixture.stop());

const kinds = [
  ['pod', 'pod', 'pod_id'],
  ['VM', 'vm', 'instance_id'],
] as const;
type Kind = (typeof kinds)[number][0];
const runs = kinds.flatMap((kind) => [-3_600_000, 3_600_000].map((offMs) => [...kind, offMs] as const));

/** One that runs, and whose run is over. */
async function ended(kind: Kind): Promise<string> {
  const id =
    kind === 'pod'
      ? (await fixture.running(team)).pod_id
      : (
          await fixture.untilVm(
            await fixture.createVm(team, { name: `vm-${newId().slice(-8)}`, auto_restart: true }),
            ({ status }) => status === 'running',
          )
        ).instance_id;
  const ref = { kind: kind === 'pod' ? 'pod' : 'vm', id, run: 1 } as const;
  await (await fixture.simulated.driverOf('1')).remove(ref, new AbortController().signal);
  return id;
}

describe('where the clock of the process is another than that of the database', () => {
  it.each(runs)('a %s waits for its next run by that of the database', async (kind, table, key, offMs) => {
    const id = await ended(kind);
    const look = () => onOtherClock(offMs, () => fixture.work());
    await fixture.query(`UPDATE ${table} SET due_at = clock_timestamp(), parked_until = NULL WHERE ${key} = $1`, [id]);
    await look();
    const row = `SELECT state, next_run_at - clock_timestamp() BETWEEN interval '4 min' AND interval '5 min' AS so FROM ${table} WHERE ${key} = $1`;
    expect(await fixture.query(row, [id])).toEqual([{ state: 'restarting', so: true }]);
    await fixture.query(
      `UPDATE ${table} SET next_run_at = clock_timestamp(), due_at = clock_timestamp(), parked_until = NULL WHERE ${key} = $1`,
      [id],
    );
    await look();
    expect(await fixture.query(`SELECT restarts FROM ${table} WHERE ${key} = $1`, [id])).toEqual([{ restarts: 1 }]);
  });

  it('a pod is neither stopped early for its longest duration nor taken for idle for longer', async () => {
    const pod = await fixture.running(team, {
      max_duration_minutes: 30,
      idle_stop: { minutes: 30, gpu_below_percent: 10 },
    });
    fixture.neighbours.usage = () => ({ kind: 'measured', peak_percent: 0 });
    await fixture.get(IdleWatch).look();
    await fixture.query(`UPDATE pod SET due_at = clock_timestamp(), parked_until = NULL WHERE pod_id = $1`, [
      pod.pod_id,
    ]);
    await onOtherClock(3_600_000, async () => {
      await fixture.get(IdleWatch).look();
      await fixture.work();
    });
    const isNow = `abs((idleness->>'lookedAtMs')::float8 / 1000 - extract(epoch FROM clock_timestamp())) < 600`;
    expect(await fixture.query(`SELECT state, ${isNow} AS is_now FROM pod WHERE pod_id = $1`, [pod.pod_id])).toEqual([
      { state: 'running', is_now: true },
    ]);
  });
});

describe('where the clock of the cluster is another than that of the database', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it.each([-3_600_000, 3_600_000])('the longest duration of a pod is as long as ever (%i ms)', async (offMs) => {
    const driver = await fixture.simulated.driverOf('1');
    const observe = driver.observePods.bind(driver);
    jest.spyOn(driver, 'observePods').mockImplementation(async (...asked) =>
      (await observe(...asked)).map((sight) => {
        if (sight.phase !== 'running') return sight;
        return { ...sight, startedAt: new Date(sight.startedAt.getTime() + offMs) };
      }),
    );
    const { pod_id } = await fixture.running(team, { max_duration_minutes: 30 });
    const row = `SELECT stops_at - clock_timestamp() BETWEEN interval '25 min' AND interval '30 min' AS so FROM pod WHERE pod_id = $1`;
    expect(await fixture.query(row, [pod_id])).toEqual([{ so: true }]);
  });
});
