import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type { ObjectRef } from '@atoll/cluster';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { PodsFixture } from '../pods-fixture.js';
import { Orphans } from './orphans.js';

/** More than PostgreSQL would read all of rather than look up each in an index. */
const ended = 8_000;
const listed = 1_000;
const volumes = 500;

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start();
});
afterAll(() => fixture.stop());

it('a look at what a cluster has reads no more rows than that, however many have ended', async () => {
  const pods = await fixture.query<{ pod_id: string }>(
    `INSERT INTO pod (pod_id, pod_name, name, team_id, workspace_id, subscription_id, gpuaas_id, region_id, profile, image, vgpus, command, ports,
       volumes, restart, start, run, state, entered_at)
     SELECT gen_random_uuid(), 'pod-' || number, 'pod', gen_random_uuid(), gen_random_uuid(), 1, 1, 1, '1g.10gb', 'busybox', 1, '[]', '[]', '[]',
       'always', 1, 1, CASE WHEN number <= $2 THEN 'running' ELSE 'deleted' END, now()
     FROM generate_series(1, $1::integer + $2::integer) number RETURNING pod_id`,
    [ended, listed],
  );
  await fixture.query(
    `INSERT INTO pod_run (pod_id, run, gpuaas_id) SELECT pod_id, 1, 1 FROM pod WHERE state = 'running'`,
  );
  await fixture.query(
    `INSERT INTO shared_volume (team_id, workspace_id, region_id, region_name, gpuaas_id, name, size_gb, state)
     SELECT gen_random_uuid(), gen_random_uuid(), 1, 'region', 1, 'one', 1, 'deleted' FROM generate_series(1, $1)`,
    [ended],
  );
  for (const table of ['pod', 'pod_run', 'shared_volume']) await fixture.query(`VACUUM (ANALYZE) ${table}`);
  // The last pods are gone, and their objects are there still. The volumes are those of other teams.
  const ours = [...pods.slice(0, listed - volumes - 2), ...pods.slice(-2)].map(({ pod_id }): ObjectRef => ({
    kind: 'pod',
    id: pod_id,
    run: 1,
  }));
  const theirs = Array.from({ length: volumes }, (_, at): ObjectRef => ({
    kind: 'volume',
    id: String(at + 1),
    run: 0,
    teamId: randomUUID(),
  }));
  const refs = [...theirs, ...ours];
  let orphans: object[] = [];
  const sent = await allStatementsDuring(async () => (orphans = await fixture.get(Orphans)['orphansAmong'](refs)));
  expect(orphans).toEqual(refs.slice(-2));
  const looks = sent.filter(({ text }) => text.includes('shared_volume.volume_id'));
  expect(looks).toHaveLength(1);
  for (const look of looks) expect(await mostRowsRead(fixture, look)).toBeLessThanOrEqual(listed);
});
