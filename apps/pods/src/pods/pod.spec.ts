import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { podWorkloadChanged } from '@atoll/contracts/gpuaas';
import { pods, type CreatePod } from '@atoll/contracts/pods';
import { teamChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { PodStarts } from './pod-start.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
});
afterAll(() => fixture.stop());

describe('a pod', () => {
  it('has a DNS label for a name, starts a workload, runs, and ends its workload when it is stopped', async () => {
    const made = await fixture.create(team, { name: 'notebook' });
    expect(made).toMatchObject({
      name: 'notebook',
      status: 'pending',
      gpuaas_id: '1',
      region_id: '1',
      profile: '1g.10gb',
      vgpus: 1,
    });
    expect(made.pod_name).toMatch(/^notebook-[a-z]{5}$/);
    const running = await fixture.until(made, 'running');
    expect(running).toMatchObject({
      reason: null,
      exit_code: null,
      restarts: 0,
      started_at: expect.stringMatching(/Z$/),
    });
    expect(fixture.neighbours.workload(made.pod_id)).toMatchObject({ status: 'running' });
    expect((await fixture.act(made, 'stop', team)).status).toBe('stopping');
    expect(await fixture.until(made, 'stopped')).toMatchObject({ reason: null, exit_code: expect.any(Number) });
    expect(fixture.neighbours.workload(made.pod_id)).toMatchObject({ status: 'stopped' });
  });

  it('starts again with a workload of its own, and is told to billing from each start to each stop, once', async () => {
    const pod = await fixture.running(team);
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    expect((await fixture.act(pod, 'start', team)).status).toBe('pending');
    await fixture.until(pod, 'running');
    expect(fixture.neighbours.workload(pod.pod_id, 2)).toMatchObject({ status: 'running' });
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    const facts = await fixture.usageOf(`pod:${pod.pod_id}`);
    expect(facts.map(({ quantity }) => quantity)).toEqual(['1', '0', '1', '0']);
    const history = await fixture.query<{ at: Date }>(
      `SELECT at FROM machine_history WHERE machine = 'pod' AND instance = $1 AND to_state IN ('running', 'stopping') ORDER BY id`,
      [pod.pod_id],
    );
    expect(facts.map(({ time }) => time)).toEqual(history.map(({ at }) => at.toISOString()));
  });

  it('asks for each workload as whoever asked for that start, and as nobody where the operator did', async () => {
    const [one, heldBy] = [newId(), newId()];
    const as = (caller: object) => ({ ...team, member: { ...team.member, ...caller } });
    const pod = await fixture.running(as({ userId: one }));
    const again = async (start: number, caller: object) => {
      await fixture.act(pod, 'stop', team);
      await fixture.until(pod, 'stopped');
      await fixture.act(pod, 'start', as(caller));
      await fixture.until(pod, 'running');
      return fixture.neighbours.workloads.get(`${pod.pod_id} ${start}`)?.requestedBy;
    };
    expect(fixture.neighbours.workloads.get(`${pod.pod_id} 1`)?.requestedBy).toBe(one);
    expect(await again(2, { heldBy })).toBe(`held/${heldBy}`);
    expect(await again(3, { platformAdmin: true })).toBeUndefined();
  });

  it('keeps its workload when it is restarted', async () => {
    const pod = await fixture.running(team);
    await fixture.act(pod, 'restart', team);
    const again = await fixture.untilIs(pod, ({ status, restarts }) => status === 'running' && restarts === 1);
    expect(again.started_at).not.toBe(pod.started_at);
    expect(fixture.neighbours.workload(pod.pod_id)).toMatchObject({ status: 'running' });
    expect((await fixture.usageOf(`pod:${pod.pod_id}`)).map(({ quantity }) => quantity)).toEqual(['1']);
    await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member);
    await fixture.untilDeleted(pod);
  });

  it('is gone when it was deleted, in whatever state, and its workload with it', async () => {
    const [waiting, running] = [await fixture.create(team), await fixture.running(team)];
    for (const pod of [waiting, running]) {
      expect((await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member)).status).toBe('stopping');
      await fixture.untilDeleted(pod);
      expect((await errorOf(fixture.pod(pod))).message).toBe('No such pod.');
      expect(fixture.neighbours.workload(pod.pod_id)?.status ?? 'stopped').toBe('stopped');
    }
  });

  it('waits for a subscription that is not active yet', async () => {
    const subscription = fixture.neighbours.subscription(team.team_id, team.workspace_id, 1, { isActive: false });
    const pod = await fixture.create(team, { subscription_id: subscription.subscription_id });
    await fixture.work();
    expect(await fixture.pod(pod)).toMatchObject({ status: 'pending', reason: 'Waiting for its subscription.' });
    subscription.isActive = true;
    await fixture.until(pod, 'running');
  });

  it('stops when gpuaas ends its workload, and says why', async () => {
    const pod = await fixture.running(team);
    await fixture.tell(podWorkloadChanged, { pod_id: pod.pod_id, start: 9, status: 'stopping', reason: null });
    expect((await fixture.pod(pod)).status).toBe('running');
    await fixture.tell(podWorkloadChanged, { pod_id: pod.pod_id, start: 1, status: 'stopping', reason: null });
    expect(await fixture.until(pod, 'stopped')).toMatchObject({ reason: 'Its subscription ended.' });
    expect(fixture.neighbours.workload(pod.pod_id)?.status).toBe('stopped');
  });

  it.each(['stopping', 'stopped'] as const)(
    'that waits for its GPU stops too, and does not keep what its workload waits for: %s',
    async (status) => {
      const { neighbours } = fixture;
      const pod = await fixture.create(team);
      neighbours.startsAs = { status: 'pending', reason: 'Waiting for a GPU.' };
      await fixture.work();
      neighbours.startsAs = { status: 'running', reason: null };
      expect(await fixture.pod(pod)).toMatchObject({ status: 'pending', reason: 'Waiting for a GPU.' });
      Object.assign(neighbours.workload(pod.pod_id) ?? {}, { status, reason: 'Waiting for its pod to stop.' });
      await fixture.tell(podWorkloadChanged, { pod_id: pod.pod_id, start: 1, status, reason: null });
      expect(await fixture.until(pod, 'stopped')).toMatchObject({
        reason: 'Its subscription ended.',
        started_at: null,
      });
      expect(neighbours.workload(pod.pod_id)?.status).toBe('stopped');
    },
  );

  it('stops too where gpuaas ends its workload after it has answered that it runs', async () => {
    const starts = fixture.get(PodStarts);
    const pod = await fixture.create(team);
    const answers = starts.workload.bind(starts);
    const spy = jest.spyOn(starts, 'workload').mockImplementationOnce(async (row) => {
      const answer = await answers(row);
      await fixture.tell(podWorkloadChanged, { pod_id: pod.pod_id, start: 1, status: 'stopping', reason: null });
      return answer;
    });
    await fixture.work();
    spy.mockRestore();
    expect(await fixture.until(pod, 'stopped')).toMatchObject({ reason: 'Its subscription ended.', started_at: null });
    expect(fixture.neighbours.workload(pod.pod_id)?.status).toBe('stopped');
  });

  it('stops after its longest duration, counted from its start', async () => {
    const pod = await fixture.running(team, { max_duration_minutes: 2 });
    await fixture.act(pod, 'restart', team);
    const again = await fixture.until(pod, 'running');
    expect(again.stops_at).toBe(pod.stops_at);
    const early = await fixture.running(team, { max_duration_minutes: 60 });
    expect((await fixture.act(early, 'stop', team)).stops_at).toBeNull();
    expect((await fixture.until(early, 'stopped')).stops_at).toBeNull();
    expect(
      (await fixture.call(pods.list, { team_id: team.team_id }, team.member)).data.find(
        ({ pod_id }) => pod_id === early.pod_id,
      )?.stops_at,
    ).toBeNull();
    expect(new Date(pod.stops_at ?? 0).getTime() - new Date(pod.started_at ?? 0).getTime()).toBe(120_000);
    await fixture.query(
      `UPDATE pod SET stops_at = clock_timestamp(), due_at = clock_timestamp(), parked_until = NULL WHERE pod_id = $1`,
      [pod.pod_id],
    );
    expect(await fixture.until(pod, 'stopped')).toMatchObject({
      reason: 'It was stopped after 2 minutes, its maximum duration.',
      stops_at: null,
    });
  });
});

describe('what refuses a pod', () => {
  it('is its subscription: none, another team’s, or one without room', async () => {
    const other = await fixture.team();
    const refused = (subscription_id: string, more: object = {}) =>
      errorOf(fixture.create(team, { subscription_id, ...more }));
    const [foreign, unknown] = [await refused(other.subscription_id), await refused('999999')];
    expect([foreign.code, foreign.message]).toEqual(['not_found', unknown.message]);
    const full = fixture.neighbours.subscription(team.team_id, team.workspace_id, 1);
    expect(await refused(full.subscription_id, { vgpus: 2 })).toMatchObject({
      code: 'insufficient_capacity',
      message: 'The subscription has 1 vGPUs, of which 0 are in use. What would fit: 1.',
    });
  });

  it('is the image policy, at creation, at a start and at a restart', async () => {
    fixture.neighbours.forbiddenImages.add('evil');
    expect(await errorOf(fixture.create(team, { image: 'evil' }))).toMatchObject({
      code: 'image_not_allowed',
      message: 'The image policy of the team does not allow docker.io/library/evil.',
    });
    const pod = await fixture.running(team, { image: 'later-evil' });
    fixture.neighbours.forbiddenImages.add('later-evil');
    expect((await errorOf(fixture.act(pod, 'restart', team))).code).toBe('image_not_allowed');
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    expect((await errorOf(fixture.act(pod, 'start', team))).code).toBe('image_not_allowed');
    fixture.neighbours.forbiddenImages.clear();
  });

  it('is a suspension: what runs may be stopped and deleted, nothing started or changed', async () => {
    const suspended = await fixture.team();
    const pod = await fixture.running(suspended);
    const change = { ...(await told(suspended)), is_suspended: true, revision: 2 };
    await fixture.tell(teamChanged, change);
    for (const attempt of [
      fixture.create(suspended),
      fixture.act(pod, 'restart', suspended),
      fixture.call(pods.update, { pod_name: pod.pod_name, name: 'x' }, suspended.member),
    ])
      expect((await errorOf(attempt)).code).toBe('team_suspended');
    await fixture.act(pod, 'stop', suspended);
    await fixture.until(pod, 'stopped');
    await fixture.call(pods.delete, { pod_name: pod.pod_name }, suspended.member);
  });

  const bad: [string, Partial<Record<keyof CreatePod, unknown>>][] = [
    ...['', 'Job', 'a_b', '-a', 'a-', 'a.b', 'http://a', 'a;b', '$(a)', 'a\nb', '169.254.169.254', 'a'.repeat(58)].map(
      (name): [string, object] => ['name', { name }],
    ),
    ...['nginx\nx', '', 'Nginx', 'a b'].map((image): [string, object] => ['image', { image }]),
    ['command', { command: 'python train.py' }],
    ['command', { command: [1] }],
    ['command', { command: ['a\0b'] }],
    ['env', { env: ['A=1'] }],
    ['env', { env: { '1A': 'x' } }],
    ['env', { env: { 'A B': 'x' } }],
    ['env', { env: { NVIDIA_VISIBLE_DEVICES: 'all' } }],
    ['env', { env: { LD_PRELOAD: '/x.so' } }],
    ['env', { env: { A: 1 } }],
    ...[0, 65_536, '80', 80.5].map((port): [string, object] => ['ports', { ports: [port] }]),
    ...['/', '/proc', '/proc/1', '/sys/x', '/a/../b', 'data', '/a//b', '/etc', '/data/', '/da:ta', '/x,y'].map(
      (path): [string, object] => ['volumes.0.path', { volumes: [{ volume_id: '1', path }] }],
    ),
    ['restart', { restart: 'sometimes' }],
    ['vgpus', { vgpus: 0 }],
    ['memory_gb', { memory_gb: -1 }],
    ['max_duration_minutes', { max_duration_minutes: 0 }],
    ['idle_stop.minutes', { idle_stop: { minutes: 0, gpu_below_percent: 5 } }],
  ];
  it.each(bad)('is %s in a form that it may not have: %j', async (path, more) => {
    const error = await errorOf(fixture.create(team, more as Partial<CreatePod>));
    expect([error.code, error.details.errors?.[0]?.path]).toEqual(['invalid_input', path]);
    // What is wrong with `/data/` and `/da:ta` stands in the sentence.
    if (path === 'volumes.0.path')
      expect(error.message).toMatch(/letters, digits, "\.", "_" and "-" alone.*without a "\/" at its end/);
  });
});

describe('the environment of a pod', () => {
  it('is sealed in the database, shown nowhere, reaches the run, and is erased with the pod, as its command is', async () => {
    const pod = await fixture.create(team, { env: { TOKEN: 'a-very-secret-value' }, command: ['sleep', '9'] });
    expect(JSON.stringify(await fixture.pod(pod))).not.toContain('secret');
    const read = () =>
      fixture.query<{ pod: { sealed_env: string | null; command: string[] } }>(
        'SELECT to_json(pod) AS pod FROM pod WHERE pod_id = $1',
        [pod.pod_id],
      );
    const [before] = await read();
    expect(before?.pod.sealed_env).toMatch(/^v1\./);
    expect(JSON.stringify(before)).not.toContain('secret');
    const history = await fixture.query('SELECT * FROM machine_history');
    expect(JSON.stringify([history, fixture.events])).not.toContain('secret');
    await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member);
    await fixture.untilDeleted(pod);
    expect((await read())[0]?.pod).toMatchObject({ sealed_env: null, command: [] });
  });
});

describe('a call that is repeated with its Idempotency-Key', () => {
  it('makes one pod, also where the first one took the last vGPU', async () => {
    const single = await fixture.team('member', 1);
    const once = { key: newId(), fingerprint: 'a' };
    const ask = () =>
      fixture.call(
        pods.create,
        { team_id: single.team_id, subscription_id: single.subscription_id, name: 'job', image: 'nginx' },
        single.member,
        once,
      );
    const first = await ask();
    await fixture.until(first, 'running');
    expect(await ask()).toEqual(first);
    expect((await fixture.call(pods.list, { team_id: single.team_id }, single.member)).pagination.total).toBe(1);
  });
});

describe('services that are away', () => {
  it('delay a start and an end, and change nothing else', async () => {
    const pod = await fixture.create(team);
    fixture.neighbours.failing = new AppError('unavailable', 'Nobody answers.');
    await fixture.work();
    expect(await fixture.pod(pod)).toMatchObject({
      status: 'pending',
      reason: 'A service of the platform is not responding.',
    });
    fixture.neighbours.failing = undefined;
    await fixture.until(pod, 'running');
    await fixture.simulated.world.faults.inject('gpuaas-1', 'stop', 'away', 100);
    await fixture.act(pod, 'stop', team);
    await fixture.work();
    expect(await fixture.pod(pod)).toMatchObject({ status: 'stopping', reason: 'The cluster does not answer.' });
    await fixture.simulated.world.faults.mend('gpuaas-1');
    await fixture.until(pod, 'stopped');
  });
});

async function told({ team_id, workspace_id }: ToldTeam) {
  return { team_id, name: 'Research', status: 'active' as const, workspaces: [{ id: workspace_id, name: 'default' }] };
}
