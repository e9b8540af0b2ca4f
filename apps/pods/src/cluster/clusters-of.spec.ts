import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { PodsFixture } from '../pods-fixture.js';
import { VmWatch } from '../vms/vm-watch.js';
import { VolumeWatch } from '../volumes/volume-watch.js';
import { ClusterWatch } from '../watch/cluster-watch.js';

const running = 2_000;

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start();
});
afterAll(() => fixture.stop());

it('which clusters are to be looked at is found without reading all that runs there', async () => {
  await fixture.query(
    `INSERT INTO pod (pod_id, pod_name, name, team_id, workspace_id, subscription_id, gpuaas_id, region_id, profile, image, vgpus, command, ports,
       volumes, restart, start, run, state, entered_at)
     SELECT gen_random_uuid(), 'pod-' || number, 'pod', gen_random_uuid(), gen_random_uuid(), 1, 7 + number % 3, 1, '1g.10gb', 'busybox', 1, '[]', '[]',
       '[]', 'always', 1, 1, CASE WHEN number % 3 = 0 THEN 'deleted' ELSE 'running' END, now()
     FROM generate_series(1, $1::integer) number`,
    [running],
  );
  await fixture.query(
    `INSERT INTO shared_volume (team_id, workspace_id, region_id, region_name, gpuaas_id, name, size_gb, state)
     SELECT gen_random_uuid(), gen_random_uuid(), 1, 'region', 7 + number % 2, 'one', 1, 'active' FROM generate_series(1, $1) number`,
    [running],
  );
  for (const table of ['pod', 'shared_volume']) await fixture.query(`VACUUM (ANALYZE) ${table}`);
  let found: (readonly string[])[] = [];
  const sent = await allStatementsDuring(async () => {
    found = [
      await fixture.get(ClusterWatch)['due'](),
      await fixture.get(VolumeWatch)['due'](),
      await fixture.get(VmWatch)['due'](),
    ];
  });
  expect(found).toEqual([['8', '9'], ['7', '8'], []]);
  const looks = sent.filter(({ text }) => text.startsWith('WITH RECURSIVE cluster'));
  expect(looks.length).toBeGreaterThanOrEqual(3);
  for (const look of looks) expect(await mostRowsRead(fixture, look)).toBeLessThan(20);
});
