import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exposedServices, instances, pods, type ExposedService } from '@atoll/contracts/pods';
import { MachineWorkers } from '@atoll/state-machine';
import { allStatementsDuring, mostRowsRead, statementsOf } from '@atoll/testing';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { DeletedExposures } from './deleted-exposures.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start({ historyRetentionDays: 30 });
  team = await fixture.team('member', 10);
});
afterAll(() => fixture.stop());

async function exposed(pod_name: string, service_name: string): Promise<ExposedService> {
  const input = { pod_name, service_name, port: 80, protocol: 'HTTP' as const };
  return fixture.untilExposed(
    await fixture.call(exposedServices.expose, input, team.member),
    ({ status }) => status === 'active',
  );
}
const keptOf = async (services: readonly ExposedService[]) =>
  (
    await fixture.query<{ service_name: string }>(
      'SELECT service_name FROM exposure WHERE service_id = ANY ($1) ORDER BY 1',
      [services.map(({ service_id }) => service_id)],
    )
  ).map(({ service_name }) => service_name);

async function forget(): Promise<void> {
  while (await fixture.get(DeletedExposures).removeSome());
  while (await fixture.get(MachineWorkers).history?.removeSome());
}

describe('after ATOLL_HISTORY_RETENTION', () => {
  it('what nothing shows is gone, and what listings promise is there: pods that ended', async () => {
    const pod = await fixture.running(team);
    const [old, late, live] = [
      await exposed(pod.pod_name, 'old'),
      await exposed(pod.pod_name, 'late'),
      await exposed(pod.pod_name, 'live'),
    ];
    for (const service of [old, late]) {
      await fixture.call(exposedServices.delete, { id: service.service_id }, team.member);
      await fixture.untilUnexposed(service);
    }
    await fixture.query(`UPDATE exposure SET entered_at = entered_at - interval '31 days' WHERE service_id <> $1`, [
      late.service_id,
    ]);
    await forget();
    expect(await keptOf([old, late, live])).toEqual(['late', 'live']);
    expect((await errorOf(fixture.call(exposedServices.find, { service_id: old.service_id }, team.member))).code).toBe(
      'not_found',
    );

    await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member);
    await fixture.untilDeleted(pod);
    await fixture.untilUnexposed(live);
    for (const table of ['pod', 'exposure'])
      await fixture.query(`UPDATE ${table} SET entered_at = entered_at - interval '400 days'`);
    await fixture.query(`UPDATE machine_history SET at = at - interval '31 days' WHERE instance = $1`, [pod.pod_id]);
    await forget();
    expect(await keptOf([old, late, live])).toEqual([]);
    const history = await fixture.query<{ instance: string }>('SELECT DISTINCT instance FROM machine_history');
    expect(history.map(({ instance }) => instance)).not.toContain(pod.pod_id);
    expect(history).not.toEqual([]);
    const whole = { team_id: team.team_id, include_ended: 'true' };
    expect((await fixture.call(pods.list, whole, team.member)).data.map(({ pod_id }) => pod_id)).toContain(pod.pod_id);
    expect((await fixture.call(instances.list, whole, team.member)).data.map(({ id }) => id)).toContain(pod.pod_id);
  });

  it('a listing of a team’s pods that ended reads none of other teams, however many these are', async () => {
    await fixture.query(
      `INSERT INTO pod (pod_id, pod_name, name, team_id, workspace_id, subscription_id, gpuaas_id, region_id, profile, image, vgpus, command, ports,
         volumes, restart, start, run, state, entered_at)
       SELECT gen_random_uuid(), 'pod-' || number, 'pod', gen_random_uuid(), gen_random_uuid(), 1, 1, 1, '1g.10gb', 'busybox', 1, '[]', '[]', '[]',
         'always', 1, 1, 'deleted', now()
       FROM generate_series(1, 4000) number`,
    );
    await fixture.query('ANALYZE pod');
    const asked = { team_id: team.team_id, include_ended: 'true', limit: 10 };
    const sent = (await statementsOf(() => fixture.call(pods.list, asked, team.member))).filter(({ text }) =>
      /FROM pod\b/.test(text),
    );
    expect(sent).not.toEqual([]);
    for (const { text, values } of sent) {
      const plan = await fixture.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${text}`, values);
      expect(plan.map((line) => line['QUERY PLAN']).join('\n')).not.toContain('Seq Scan on pod');
    }
  });

  it('a look for old ones reads none that were deleted since, however many these are', async () => {
    const pod = await fixture.running(team);
    const service = await exposed(pod.pod_name, 'one');
    await fixture.query(
      `INSERT INTO exposure (pod_id, gpuaas_id, public_host, service_name, port, protocol, external_port, is_ssl, is_picked, state, entered_at)
       SELECT pod_id, gpuaas_id, public_host, service_name, port, protocol, external_port, is_ssl, is_picked, 'deleted', now() FROM exposure, generate_series(1, 3000) WHERE service_id = $1`,
      [service.service_id],
    );
    await fixture.query('ANALYZE exposure');
    const looks = (await allStatementsDuring(() => fixture.get(DeletedExposures).removeSome())).filter(({ text }) =>
      text.startsWith('DELETE FROM exposure'),
    );
    expect(looks).toHaveLength(1);
    for (const look of looks) expect(await mostRowsRead(fixture, look)).toBeLessThan(100);
  });
});
