import { exposedServices } from '@atoll/contracts/pods';
import { MachineWorkers } from '@atoll/state-machine';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { OwnersOfExposures1894000000000 } from '../database/migrations/1894000000000-owners-of-exposures.js';
import { PodsFixture } from '../pods-fixture.js';

const many = 100;

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start();
});
afterAll(() => fixture.stop());

async function expose(): Promise<string> {
  const team = await fixture.team();
  const pod = await fixture.running(team);
  const asked = { pod_name: pod.pod_name, service_name: 'web', port: 80, protocol: 'HTTP' } as const;
  const exposed = await fixture.call(exposedServices.expose, asked, team.member);
  const { service_id } = await fixture.untilExposed(exposed, ({ status }) => status === 'active');
  return service_id;
}

let crowd: string;
let other: string;
beforeAll(async () => {
  [crowd, other] = [await expose(), await expose()];
  const [columns] = await fixture.query<{ names: string }>(
    `SELECT string_agg(column_name, ', ') AS names FROM information_schema.columns WHERE table_name = 'exposure' AND column_name <> 'service_id'`,
  );
  const names = columns?.names ?? '';
  await fixture.query(
    `INSERT INTO exposure (${names}) SELECT ${names.replace('service_name', `'copy-' || n`)} FROM exposure, generate_series(1, ${many}) n WHERE service_id = $1`,
    [crowd],
  );
});

/** Runs steps of exposed services, all of them due, until that of the other team had one. Returns the claims. */
async function claimsUntilOther(): Promise<{ text: string; values: unknown[] }[]> {
  await fixture.query(
    `UPDATE exposure SET due_at = clock_timestamp() - CASE WHEN service_id = $1 THEN interval '1 minute' ELSE '1 hour' END, parked_until = NULL`,
    [other],
  );
  const { machines, workers } = fixture.get(MachineWorkers);
  const worker = workers[machines.findIndex(({ table }) => table === 'exposure')]!;
  const isDue = async () =>
    (await fixture.query('SELECT FROM exposure WHERE service_id = $1 AND due_at IS NOT NULL', [other])).length > 0;
  const sent = await allStatementsDuring(async () => {
    for (let steps = 0; steps < 20 && (await isDue()); steps += 1) await worker.doNext();
  });
  expect(await isDue()).toBe(false);
  return sent.filter(({ text }) => /WITH RECURSIVE.*UPDATE exposure/s.test(text));
}

it('a claim takes turns by team among many exposed services that are due, and looks up the pods of none', async () => {
  const [claim] = await claimsUntilOther();
  expect(await mostRowsRead(fixture, claim!, 'pod')).toBe(0);
});

it('those that the release before has made take turns by team too', async () => {
  await fixture.query('UPDATE exposure SET owner_id = NULL');
  const [claim] = await claimsUntilOther();
  expect(await mostRowsRead(fixture, claim!, 'pod')).toBeGreaterThan(0);
});

it('the upgrade gives each exposed service the team of its pod', async () => {
  await fixture.query('UPDATE exposure SET owner_id = NULL');
  const runner = fixture.get(DataSource).createQueryRunner();
  await new OwnersOfExposures1894000000000().up(runner);
  await runner.release();
  const others = await fixture.query(
    'SELECT FROM exposure JOIN pod USING (pod_id) WHERE owner_id IS DISTINCT FROM team_id',
  );
  expect(others).toEqual([]);
});
