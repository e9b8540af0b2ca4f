import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exposedServices, type ExposedService, type ExposeService, type Pod } from '@atoll/contracts/pods';
import { teamChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
let pod: Pod;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
  pod = await fixture.running(team);
});
afterAll(() => fixture.stop());

const ask = (more: object = {}, caller = team.member, of = pod) =>
  fixture.call(
    exposedServices.expose,
    { pod_name: of.pod_name, service_name: `s-${newId()}`, port: 80, protocol: 'HTTP', ...more },
    caller,
  );
const active = async (more: Partial<ExposeService> = {}) =>
  fixture.untilExposed(await ask(more), ({ status }) => status === 'active');
const remove = (service: ExposedService) =>
  fixture.call(exposedServices.delete, { id: service.service_id }, team.member);
const fetchText = async (url: string) => (await fetch(url)).text();

const columns =
  'pod_id, gpuaas_id, public_host, service_name, port, protocol, external_port, is_ssl, is_picked, run, state, entered_at, lane, further_lanes, created_at';

describe('what refuses an exposed service', () => {
  const bad: [string, object][] = [
    ...[0, 65_536, '80', 80.5].map((port): [string, object] => ['port', { port }]),
    ...[0, 65_536, '30100', 30_100.5, 3_000, 20_999].map((external_port): [string, object] => [
      'external_port',
      { external_port },
    ]),
    ...['http', 'SCTP', ''].map((protocol): [string, object] => ['protocol', { protocol }]),
    ...['http://a', 'a.b', '169.254.169.254', 'a\nb', 'a;b', '$(a)', 'a'.repeat(64), '-a', 'Web'].map(
      (service_name): [string, object] => ['service_name', { service_name }],
    ),
    ['ssl_enabled', { protocol: 'UDP', ssl_enabled: true }],
    ['ssl_enabled', { protocol: 'HTTPS', ssl_enabled: true }],
    ['ssl_enabled', { ssl_enabled: 'yes' }],
  ];
  it.each(bad)('is %s in a form that it may not have: %j', async (path, more) => {
    const error = await errorOf(ask(more));
    expect([error.code, error.details.errors?.[0]?.path]).toEqual(['invalid_input', path]);
  });

  it('is the most that a team may have, however many are exposed at once; another team is exposed as ever', async () => {
    const full = await fixture.team();
    const own = await fixture.running(full);
    const first = await ask({}, full.member, own);
    await fixture.query(
      `INSERT INTO exposure (${columns}) SELECT ${columns.replace('service_name', `'copy-' || n`).replace('external_port', '0')}
       FROM exposure, generate_series(1, 197) n WHERE service_id = $1`,
      [first.service_id],
    );
    // None of these is opened, or closed: that takes its time, and is no matter here.
    const leaveAll = () =>
      fixture.query(`UPDATE exposure SET due_at = now() + interval '1 hour' WHERE pod_id = $1`, [own.pod_id]);
    await leaveAll();
    await fixture.query(
      `UPDATE exposure SET state = 'failed', deadline_at = NULL WHERE service_name IN ('copy-1', 'copy-2')`,
    );
    const outcomes = await Promise.allSettled(Array.from({ length: 6 }, () => ask({}, full.member, own)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    expect(await errorOf(ask({}, full.member, own))).toMatchObject({
      code: 'conflict',
      message: 'The team has 200 exposed services, the maximum for a team.',
    });
    await remove(await active());
    // What a pod has ended with counts no more.
    await fixture.act(own, 'stop', full);
    await leaveAll();
    await fixture.until(own, 'stopped');
    const other = await fixture.running(full);
    await ask({}, full.member, other);
  });

  it('is its name where the pod has one of it; at another pod it does not exist', async () => {
    const service = await active({ service_name: 'twice' });
    expect(await errorOf(ask({ service_name: 'twice' }))).toMatchObject({
      code: 'conflict',
      message: 'The pod has an exposed service named twice.',
    });
    const { service_id } = service;
    expect(
      (await errorOf(fixture.call(exposedServices.find, { service_id, pod_name: 'other-bcdfg' }, team.member))).code,
    ).toBe('not_found');
    await remove(service);
  });

  it('is a suspension, which lets what is open go on and be deleted', async () => {
    const suspended = await fixture.team();
    const own = await fixture.running(suspended);
    const service = await fixture.untilExposed(
      await ask({}, suspended.member, own),
      ({ status }) => status === 'active',
    );
    const workspaces = [{ id: suspended.workspace_id, name: 'default' }];
    await fixture.tell(teamChanged, {
      team_id: suspended.team_id,
      revision: 2,
      name: 'R',
      is_suspended: true,
      status: 'active',
      workspaces,
    });
    expect((await errorOf(ask({}, suspended.member, own))).code).toBe('team_suspended');
    expect(await fetchText(service.url)).toBe(`${own.pod_name}\n`);
    await fixture.call(exposedServices.delete, { id: service.service_id }, suspended.member);
    await fixture.untilUnexposed(service);
  });
});
