import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { baremetalChanged } from '@atoll/contracts/gpuaas';
import { exposedServices, instances, podBatches, podConnections, podHoldings, pods } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
});
afterAll(() => fixture.stop());

it('instances are all pods of the team and of no other, whole unless limit is sent, the deleted ones where asked', async () => {
  const other = await fixture.team();
  await fixture.create(other);
  const [one, two] = [await fixture.create(team, { name: 'one' }), await fixture.create(team, { name: 'two' })];
  const list = async (more: object = {}) =>
    fixture.call(instances.list, { team_id: team.team_id, ...more }, team.member);
  expect(await list()).toEqual({
    data: [one, two].map(({ pod_id, pod_name, workspace_id, region_id, created_at }) => ({
      id: pod_id,
      name: pod_name,
      kind: 'pod',
      status: 'pending',
      team_id: team.team_id,
      workspace_id,
      region_id,
      created_at,
    })),
  });
  const page = await list({ limit: 1, page: 2 });
  expect([page.data.map(({ name }) => name), page.pagination]).toEqual([
    [two.pod_name],
    { page: 2, limit: 1, total: 2 },
  ]);
  await fixture.call(pods.delete, { pod_name: one.pod_name }, team.member);
  await fixture.untilDeleted(one);
  expect((await list()).data.map(({ name }) => name)).toEqual([two.pod_name]);
  const instant = expect.stringMatching(/^20.*Z$/);
  const ended = { team_id: team.team_id, include_ended: 'true' } as const;
  const { data } = await fixture.call(pods.list, ended, team.member);
  expect(data.map(({ pod_name, deleted_at }) => [pod_name, deleted_at])).toEqual([
    [one.pod_name, instant],
    [two.pod_name, null],
  ]);
  expect((await list(ended)).data.map(({ name, status, deleted_at }) => [name, status, deleted_at])).toEqual([
    [one.pod_name, 'stopped', instant],
    [two.pod_name, 'running', undefined],
  ]);
  expect((await errorOf(fixture.call(instances.list, { team_id: team.team_id }, other.member))).code).toBe('not_found');
  expect((await errorOf(fixture.call(instances.list, { team_id: newId() }))).code).toBe('not_found');
});

it('instances without limit are all of all teams that are asked for, also the thousands that ended where asked', async () => {
  const [one, two] = [await fixture.team(), await fixture.team()];
  for (const [at, team] of [one, two].entries()) {
    const gone = await fixture.create(team);
    await fixture.call(pods.delete, { pod_name: gone.pod_name }, team.member);
    await fixture.untilDeleted(gone);
    await fixture.query(
      `INSERT INTO pod SELECT copy.* FROM pod CROSS JOIN generate_series(0, 598) n CROSS JOIN LATERAL jsonb_populate_record(pod, jsonb_build_object(
         'pod_id', gen_random_uuid(), 'pod_name', 'gone-' || $2::text || '-' || n, 'created_at', pod.created_at - n * interval '1 minute')) copy
       WHERE pod.pod_id = $1`,
      [gone.pod_id, at],
    );
  }
  const live = [await fixture.create(one), await fixture.create(two)];
  const teams = [one, two].map(({ team_id: teamId }) => ({ teamId, role: 'viewer' as const }));
  const list = (more: object) => fixture.call(instances.list, more, { ...one.member, scope: 'user', teams });
  const { data } = await list({ include_ended: 'true' });
  expect(new Set(data.map(({ id }) => id)).size).toBe(1_202);
  expect(data.slice(-2).map(({ id }) => id)).toEqual(live.map(({ pod_id }) => pod_id));
  expect(data.map(({ created_at }) => created_at)).toEqual(data.map(({ created_at }) => created_at).toSorted());
  expect((await list({ include_ended: 'true', team_id: two.team_id })).data).toHaveLength(601);
  expect((await list({ include_ended: 'true', limit: 1 })).pagination?.total).toBe(1_202);
  expect((await list({})).data).toHaveLength(2);
});

it('instances are those of all teams of the caller where no team is named, and a page of all there are for the operator', async () => {
  const [one, two, other] = [await fixture.team(), await fixture.team(), await fixture.team()];
  const made = [await fixture.create(one), await fixture.create(two)];
  await fixture.create(other);
  const teams = [one, two].map(({ team_id: teamId }) => ({ teamId, role: 'viewer' as const }));
  const list = (of: typeof teams, more: object = {}) =>
    fixture.call(instances.list, more, { ...one.member, scope: 'user', teams: of });
  const idsOf = (of: { pod_id: string }[]) => ({ data: of.map(({ pod_id: id }) => expect.objectContaining({ id })) });
  expect(await list(teams)).toEqual(idsOf(made));
  expect(await list(teams, { limit: 1, page: 2 })).toEqual({
    ...idsOf(made.slice(1)),
    pagination: { page: 2, limit: 1, total: 2 },
  });
  expect(await list([])).toEqual({ data: [] });
  const lacking = [teams[0]!, { ...teams[1]!, lacksSecondFactor: true }];
  expect(await list(lacking)).toEqual(idsOf(made.slice(0, 1)));
  expect((await errorOf(list(lacking, { team_id: two.team_id }))).code).toBe('forbidden');
  const all = await fixture.call(instances.list, {});
  expect([all.data.length <= 10, all.pagination?.limit, all.pagination!.total >= 3]).toEqual([true, 10, true]);
});

it('instances are the bare-metal ones of the team too, in whatever order their events come', async () => {
  const [own, other] = [await fixture.team(), await fixture.team()];
  const told = {
    instance_id: newId(),
    team_id: own.team_id,
    workspace_id: own.workspace_id,
    name: 'metal',
    created_at: '2026-01-01T00:00:00.000Z',
  };
  await fixture.tell(baremetalChanged, { ...told, revision: 2, region_id: '7', status: 'Active' });
  await fixture.tell(baremetalChanged, { ...told, revision: 1, region_id: null, status: 'Requested' });
  const list = async (include_ended?: 'true') =>
    (await fixture.call(instances.list, { team_id: own.team_id, ...(include_ended && { include_ended }) }, own.member))
      .data;
  const { instance_id: id, ...rest } = told;
  expect(await list()).toEqual([{ id, kind: 'baremetal', status: 'Active', region_id: '7', ...rest }]);
  expect((await fixture.call(instances.list, { team_id: other.team_id }, other.member)).data).toEqual([]);
  await fixture.tell(baremetalChanged, { ...told, revision: 3, region_id: '7', status: 'Released' });
  expect([await list(), (await list('true')).map(({ status }) => status)]).toEqual([[], ['Released']]);
});

it('a service that is closing is no way to reach a pod any more', async () => {
  const own = await fixture.team();
  const { pod_name } = await fixture.running(own);
  const input = { pod_name, service_name: 'web', port: 80, protocol: 'HTTP' as const };
  const made = await fixture.call(exposedServices.expose, input, own.member);
  await fixture.untilExposed(made, ({ status }) => status === 'active');
  await fixture.query(`UPDATE exposure SET state = 'deleting', due_at = NULL WHERE service_id = $1`, [made.service_id]);
  const { data } = await fixture.call(podBatches.connections, { team_id: own.team_id }, own.member);
  expect(data).toMatchObject([{ pod_name, services: [] }]);
});

it('other services are told how the pods of a team are reached, and how many there are in which region; users are not', async () => {
  const own = await fixture.team();
  const pod = await fixture.running(own);
  const input = { pod_name: pod.pod_name, service_name: 'web', port: 80, protocol: 'HTTP' as const };
  const made = await fixture.call(exposedServices.expose, input, own.member);
  const read = () => fixture.ask(podConnections.read, { team_id: own.team_id }, systemContext('gpuaas'));
  const service = { service_id: made.service_id, service_name: 'web' };
  const connection = { subscription_id: own.subscription_id, pod_name: pod.pod_name, status: 'running', ssh: null };
  expect(await read()).toEqual({ data: [{ ...connection, services: [{ ...service, url: null }] }] });
  const { url } = await fixture.untilExposed(made, ({ status }) => status === 'active');
  expect(await read()).toEqual({ data: [{ ...connection, services: [{ ...service, url }] }] });
  expect(await fixture.call(podBatches.connections, { team_id: own.team_id }, own.member)).toEqual(await read());
  const holdings = () => fixture.ask(podHoldings.ofTeam, { team_id: own.team_id }, systemContext('teams'));
  const north = { region_id: '1', region_name: 'eu-north', pods: 1, pods_in_use: 1, vms: 0, vms_in_use: 0 };
  expect((await holdings()).regions).toEqual([{ ...north, shared_volumes: 0, storage_in_gb: 0 }]);
  await fixture.createVolume(own, { size_in_gb: 100 });
  await fixture.createVolume(own, { size_in_gb: 20, region_id: '2' });
  expect((await holdings()).regions).toEqual([
    { ...north, shared_volumes: 1, storage_in_gb: 100 },
    {
      region_id: '2',
      region_name: 'eu-south',
      pods: 0,
      pods_in_use: 0,
      vms: 0,
      vms_in_use: 0,
      shared_volumes: 1,
      storage_in_gb: 20,
    },
  ]);
  await fixture.act(pod, 'stop', own);
  await fixture.until(pod, 'stopped');
  expect((await holdings()).regions).toMatchObject([{ pods: 1, pods_in_use: 0 }, { pods: 0 }]);
  for (const attempt of [
    fixture.call(podConnections.read, { team_id: own.team_id }, own.member),
    fixture.call(podHoldings.ofTeam, { team_id: own.team_id }),
  ])
    expect((await errorOf(attempt)).code).toBe('forbidden');
});
