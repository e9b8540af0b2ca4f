import { exposedServices } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { statementsOf } from '@atoll/testing';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { PodsFixture } from '../pods-fixture.js';
import type { PodsSettings } from '../pods-settings.js';
import { ExternalPorts } from './ports.js';

let fixture: PodsFixture;
/** Of a service whose steps never run here. */
let serviceId: string;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  const team = await fixture.team();
  const { pod_name } = await fixture.running(team);
  const asked = { pod_name, service_name: 'web', port: 80, protocol: 'HTTP' } as const;
  serviceId = (await fixture.call(exposedServices.expose, asked, team.member)).service_id;
});
afterAll(() => fixture.stop());

const of = (exposedPorts: string) => new ExternalPorts({ exposedPorts } as PodsSettings);
const pick = (ports: ExternalPorts, host: string) =>
  fixture.get(DataSource).transaction((manager) => ports.pick(manager, host, serviceId));

async function reserve(host: string, first: number, last: number, columns: string): Promise<void> {
  await fixture.query(
    `INSERT INTO reserved_port (public_host, external_port, service_id, until)
     SELECT $1, port, ${columns} FROM generate_series($2::integer, $3::integer) port`,
    [host, first, last],
  );
}

it('picks each free port once and then none: not those of services, nor what something else has had until now', async () => {
  const ports = of('20000-20019');
  await reserve('a.test', 20_000, 20_004, `${serviceId}, NULL`);
  await reserve('a.test', 20_005, 20_009, `NULL, clock_timestamp() + interval '1 hour'`);
  await reserve('a.test', 20_010, 20_014, `NULL, clock_timestamp() - interval '1 hour'`);
  await reserve('b.test', 20_000, 20_019, `${serviceId}, NULL`);
  const picked: number[] = [];
  while (picked.length < 10) picked.push(await pick(ports, 'a.test'));
  expect(picked.toSorted()).toEqual(Array.from({ length: 10 }, (_, at) => 20_010 + at));
  await expect(pick(ports, 'a.test')).rejects.toMatchObject({ code: 'port_in_use' });
});

it.each([false, true])(
  'reads what is reserved once, however many ports there are to choose from (statistics: %s)',
  async (hasStatistics) => {
    const host = `${newId()}.test`;
    await reserve(host, 30_000, 30_999, `${serviceId}, NULL`);
    if (hasStatistics) await fixture.query('ANALYZE reserved_port');
    const [choosing] = (await statementsOf(() => pick(of('30000-60000'), host))).filter(({ text }) =>
      text.includes('random()'),
    );
    const [row] = await fixture.query<{
      'QUERY PLAN': { Plan: Record<'Shared Hit Blocks' | 'Shared Read Blocks', number> }[];
    }>(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${choosing?.text}`, choosing?.values);
    const { 'Shared Hit Blocks': hit = NaN, 'Shared Read Blocks': read = NaN } = row?.['QUERY PLAN'][0]?.Plan ?? {};
    expect(hit + read).toBeLessThan(1_100);
  },
);
