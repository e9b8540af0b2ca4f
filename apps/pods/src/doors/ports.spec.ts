import { exposedServices } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { statementsOf } from '@atoll/testing';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';
import type { PodsSettings } from '../pods-settings.js';
import { ExternalPorts } from './ports.js';

let fixture: PodsFixture;
let team: ToldTeam;
let pod_name: string;
/** Of a service whose steps never run here. */
let serviceId: string;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team();
  ({ pod_name } = await fixture.running(team));
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

describe('once most ports of a host are in use', () => {
  const ports = of('40000-42681');
  const refusalOf = (host: string, teamId: string) =>
    fixture.get(DataSource).transaction((manager) => ports.requireShare(manager, host, teamId));

  it.each([
    [24, 2012, '670 of 2682 external ports are free: a team may have 24 now, and the team has 24.'],
    [23, 2012, undefined],
    [199, 1341, undefined],
    [1, 2681, '1 of 2682 external ports are free: a team may have 1 now, and the team has 1.'],
  ])('a team with %i of the %i has another, or not; one without any has one', async (own, used, refusal) => {
    const host = `${newId()}.test`;
    await reserve(host, 40_000, 39_999 + own, `${serviceId}, NULL`);
    await reserve(host, 40_000 + own, 39_999 + used, `NULL, clock_timestamp() + interval '1 hour'`);
    // What something else has had until now, and ports that are offered no longer, make none scarce.
    await reserve(host, 40_000 + used, 42_681, `NULL, clock_timestamp() - interval '1 hour'`);
    await reserve(host, 42_682, 43_681, `NULL, clock_timestamp() + interval '1 hour'`);
    const asked = refusalOf(host, team.team_id);
    if (refusal === undefined) await asked;
    else await expect(asked).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining(refusal) });
    await refusalOf(host, newId());
  });

  it('neither a new exposed service nor another port of one is given to a team that has its share', async () => {
    const asked = { pod_name, service_name: 'other', port: 80, protocol: 'HTTP' } as const;
    const { host, service_id } = await fixture.untilExposed(
      await fixture.call(exposedServices.expose, asked, team.member),
      ({ status }) => status === 'active',
    );
    const { first, last } = fixture.get(ExternalPorts);
    await fixture.query(
      `INSERT INTO reserved_port (public_host, external_port, until)
       SELECT $1, port, clock_timestamp() + interval '1 hour' FROM generate_series($2::integer, $3::integer - 2) port
       ON CONFLICT DO NOTHING`,
      [host, first, last],
    );
    const refused = { code: 'conflict', message: expect.stringContaining('a team may have 1 now') };
    const more = { ...asked, service_name: 'more' };
    await expect(fixture.call(exposedServices.expose, more, team.member)).rejects.toMatchObject(refused);
    const update = { service_id, external_port: last };
    await expect(fixture.call(exposedServices.update, update, team.member)).rejects.toMatchObject(refused);
  });
});
