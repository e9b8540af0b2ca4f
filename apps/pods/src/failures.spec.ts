import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { exposedServices, sharedVolumes, vms } from '@atoll/contracts/pods';
import { AppError } from '@atoll/errors';
import { timeoutFactor } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { Failures1883000000000 } from './database/migrations/1883000000000-failures.js';
import { PodsFixture, type ToldTeam } from './pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
const strangers: Server[] = [];
beforeAll(async () => {
  fixture = await PodsFixture.start({ exposedPorts: '1024-65535' });
  team = await fixture.team('member', 100);
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
});
afterEach(async () => {
  jest.restoreAllMocks();
  await fixture.simulated.world.faults.mend('gpuaas-1');
});
afterAll(async () => {
  for (const stranger of strangers) stranger.close();
  await fixture.stop();
});

/** Something that fails. */
interface Failing {
  readonly table: 'pod' | 'vm' | 'shared_volume' | 'exposure';
  readonly key: string;
  readonly id: string;
  /** What the API answers. */
  readonly shown: () => Promise<{ status: string; reason?: string | null; error?: { message: string } }>;
}

async function failingPod(name: string): Promise<Failing> {
  const pod = await fixture.create(team, { name, restart: 'never' });
  return { table: 'pod', key: 'pod_id', id: pod.pod_id, shown: () => fixture.pod(pod) };
}

async function failingVm(): Promise<Failing> {
  const vm = await fixture.createVm(team, { name: `vm-${++made}-crash` });
  return { table: 'vm', key: 'instance_id', id: vm.instance_id, shown: () => fixture.vm(vm) };
}

async function failingVolume(): Promise<Failing> {
  await fixture.simulated.world.faults.inject('gpuaas-1', 'volume', 'refuse', 100);
  const { volume_id } = await fixture.createVolume(team);
  await fixture.work();
  await fixture.query('UPDATE shared_volume SET deadline_at = clock_timestamp() WHERE volume_id = $1', [volume_id]);
  return {
    table: 'shared_volume',
    key: 'volume_id',
    id: volume_id,
    shown: () => fixture.call(sharedVolumes.get, { volume_id }),
  };
}

async function failingService(): Promise<Failing> {
  const { pod_name } = await fixture.running(team);
  const stranger = createServer().listen(0, '127.0.0.1');
  strangers.push(stranger);
  await once(stranger, 'listening');
  takenPort = (stranger.address() as AddressInfo).port;
  const asked = { pod_name, service_name: 'web', port: 80, protocol: 'HTTP', external_port: takenPort } as const;
  const { service_id } = await fixture.call(exposedServices.expose, asked, team.member);
  return {
    table: 'exposure',
    key: 'service_id',
    id: service_id,
    shown: () => fixture.call(exposedServices.find, { service_id }),
  };
}

let made = 0;
let takenPort = 0;
const kinds: [name: string, fail: () => Promise<Failing>, ending: 'stopping' | 'failed', reason: () => string][] = [
  ['a pod without an image', () => failingPod('pull-fail'), 'stopping', () => 'The registry has no such image.'],
  ['a pod whose process failed', () => failingPod('exit-3'), 'stopping', () => 'Its process ended with exit code 3.'],
  ['a VM', failingVm, 'stopping', () => 'Its guest crashed.'],
  ['a shared volume', failingVolume, 'failed', () => 'Deadline exceeded: The cluster has no space left.'],
  [
    'an exposed service',
    failingService,
    'failed',
    () => `Something else on the host listens on the external port ${takenPort}.`,
  ],
];

/** From when it fails on, its cluster does not answer, until `jest.restoreAllMocks`. */
function loseClusterWhileFailing({ table, key, id }: Failing): void {
  const driverOf = fixture.simulated.driverOf.bind(fixture.simulated);
  jest.spyOn(fixture.simulated, 'driverOf').mockImplementation(async (gpuaasId) => {
    const failing = await fixture.query(`SELECT FROM ${table} WHERE ${key} = $1 AND state = 'failing'`, [id]);
    if (failing.length > 0) throw new AppError('unavailable', 'It is away.');
    return driverOf(gpuaasId);
  });
}

/** Works until the row is as it should be, with a look at it again and again. */
async function until({ table, key, id }: Failing, condition: string): Promise<void> {
  const found = () => fixture.query(`SELECT FROM ${table} WHERE ${key} = $1 AND ${condition}`, [id]);
  for (let pauseMs = 0, lateMs = Date.now() + 60_000 * timeoutFactor; (await found()).length === 0; pauseMs = 20) {
    if (Date.now() > lateMs) throw new Error(`It does not come to ${condition}.`);
    await delay(pauseMs);
    await fixture.query(
      `UPDATE ${table} SET due_at = clock_timestamp(), parked_until = NULL WHERE ${key} = $1 AND parked_until IS NOT NULL`,
      [id],
    );
    await fixture.work();
  }
}
const hiccup = `last_error->>'message' = 'A service of the platform is not responding.'`;
const reasonOf = async ({ shown }: Failing) => {
  const { status, reason, error } = await shown();
  return [status, reason ?? error?.message];
};

it.each(kinds)('%s shows why it failed, whatever went wrong while it ended', async (_, fail, ending, reason) => {
  const failing = await fail();
  loseClusterWhileFailing(failing);
  await until(failing, `state = 'failing' AND attempts > 1 AND ${hiccup}`);
  expect(await reasonOf(failing)).toEqual([ending, reason()]);
  jest.restoreAllMocks();
  await until(failing, `state = 'failed'`);
  expect(await reasonOf(failing)).toEqual(['failed', reason()]);
  // What a replica of the release before shows, and the history says.
  const { table, key, id } = failing;
  const told = await fixture.query(
    `SELECT last_error->>'message' AS message, reason FROM ${table} JOIN machine_history ON instance = ${key}::text AND to_state = state
     WHERE ${key} = $1 AND machine = $2`,
    [id, table],
  );
  expect(told).toEqual([{ message: reason(), reason: reason() }]);
});

it.each(kinds)('%s shows why it failed, also where its end is given up', async (_, fail, _ending, reason) => {
  const failing = await fail();
  loseClusterWhileFailing(failing);
  await until(failing, `state = 'failing' AND ${hiccup}`);
  const { table, key, id } = failing;
  await fixture.query(`UPDATE ${table} SET deadline_at = clock_timestamp() WHERE ${key} = $1`, [id]);
  await until(failing, `state = 'failed'`);
  expect(await reasonOf(failing)).toEqual(['failed', reason()]);
});

it('a pod that failed once more shows why it failed this time', async () => {
  const pod = await fixture.create(team, { name: 'pull-fail' });
  await fixture.until(pod, 'failed');
  await fixture.act(pod, 'start', team);
  await fixture.act(pod, 'stop', team);
  jest.spyOn(fixture.simulated, 'driverOf').mockRejectedValue(new AppError('unavailable', 'It is away.'));
  const stopped: Failing = { table: 'pod', key: 'pod_id', id: pod.pod_id, shown: () => fixture.pod(pod) };
  await until(stopped, `state = 'stopping' AND ${hiccup}`);
  await fixture.query('UPDATE pod SET deadline_at = clock_timestamp() WHERE pod_id = $1', [pod.pod_id]);
  await until(stopped, `state = 'failed'`);
  expect((await fixture.pod(pod)).reason).toBe('Deadline exceeded: A service of the platform is not responding.');
});

it.each(kinds)(
  '%s shows why it failed, also where the platform is upgraded while it ends',
  async (_, fail, ending, reason) => {
    const failing = await fail();
    const { table, key, id } = failing;
    loseClusterWhileFailing(failing);
    await until(failing, `state = 'failing' AND ${hiccup}`);
    const upgrade = new Failures1883000000000();
    const runner = fixture.get(DataSource).createQueryRunner();
    await upgrade.down(runner);
    await fixture.query(
      `UPDATE ${table} SET last_error = jsonb_build_object('code', 'it', 'message', $2::text) WHERE ${key} = $1`,
      [id, reason()],
    );
    await upgrade.up(runner);
    await runner.release();
    await until(failing, `state = 'failing' AND ${hiccup}`);
    expect(await reasonOf(failing)).toEqual([ending, reason()]);
  },
);
