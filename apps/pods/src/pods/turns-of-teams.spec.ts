import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { MachineWorkers } from '@atoll/state-machine';
import { PodsFixture } from '../pods-fixture.js';

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start();
});
beforeEach(() => fixture.query('DELETE FROM pod'));
afterAll(() => fixture.stop());

/** 300 pods of one team on the one cluster, in the state of the first of them, all due for a minute. */
async function crowd(isRunning: boolean): Promise<void> {
  const team = await fixture.team('member', 400);
  const { pod_id } = isRunning ? await fixture.running(team) : await fixture.create(team);
  await fixture.query(
    `INSERT INTO pod SELECT more.* FROM pod, generate_series(2, 300) n, jsonb_populate_record(pod,
       jsonb_build_object('pod_id', gen_random_uuid(), 'pod_name', pod_name || '-' || n)) more
     WHERE pod.pod_id = $1`,
    [pod_id],
  );
  await fixture.query(`UPDATE pod SET due_at = clock_timestamp() - interval '1 minute', parked_until = NULL`);
}

it.each([
  ['reviews of what runs', true],
  ['starts', false],
])(
  'a pod comes to run within few steps beside 300 %s that another team has had due for longer',
  async (_, isRunning) => {
    await crowd(isRunning);
    const { machines, workers } = fixture.get(MachineWorkers);
    const worker = workers[machines.findIndex(({ table }) => table === 'pod')]!;
    const pod = await fixture.create(await fixture.team());
    let steps = 0;
    while ((await fixture.pod(pod)).status !== 'running' && steps < 1_000) {
      if (await worker.doNext()) steps += 1;
      // What has been asked of the cluster is looked at again now.
      await fixture.query(
        `UPDATE pod SET due_at = clock_timestamp(), parked_until = NULL WHERE pod_id = $1 AND parked_until IS NOT NULL`,
        [pod.pod_id],
      );
    }
    // One worker does one step at a time here, and at least every other of them is this team's, by chance.
    expect(steps).toBeLessThan(150);
    const [left] = await fixture.query<{ due: string }>(
      'SELECT count(*) AS due FROM pod WHERE due_at IS NOT NULL AND attempts = 0',
    );
    expect(Number(left?.due)).toBeGreaterThan(100);
  },
);
