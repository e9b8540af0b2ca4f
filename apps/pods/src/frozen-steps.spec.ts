import { ClusterError, type ClusterDriver } from '@atoll/cluster';
import { exposedServices, vms, type ExposedService } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import type { DurableMachine, MachineRow, StepContext } from '@atoll/state-machine';
import { freePort } from '@atoll/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { ExposureSteps } from './doors/exposure-steps.js';
import type { ExposureEntity } from './model/exposure.entity.js';
import { PodSteps } from './pods/pod-steps.js';
import { PodsFixture, type ToldTeam } from './pods-fixture.js';
import { VmSteps } from './vms/vm-steps.js';
import { VolumeSteps } from './volumes/volume-steps.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => fixture.stop());

type Step = (context: StepContext) => Promise<unknown>;

/** The step of a row as it is now, but for `more`. */
async function stepOf<Row extends MachineRow>(
  machine: DurableMachine<Row>,
  key: string,
  more: Partial<Row> = {},
): Promise<Step> {
  const [raw] = await fixture.query(`SELECT * FROM ${machine.table} WHERE ${machine.key} = $1`, [key]);
  const row = Object.assign(machine.rowOf(raw!), more);
  return (context) => machine.step(row, context);
}

/**
 * Runs a step whose process is frozen while it waits for the answer to its request `at` to the cluster, or for the
 * driver with 0. Meanwhile its claim runs out, which it finds when it next reads the signal of its context. Returns
 * whether it came so far, and which requests it sent afterwards.
 */
async function frozenAt(at: number, driver: ClusterDriver, step: Step): Promise<{ isFrozen: boolean; late: string[] }> {
  const late: string[] = [];
  const [held, lost] = [new AbortController().signal, AbortSignal.abort(new Error('The claim has run out.'))];
  let [sent, isFrozen] = [0, false];
  const freezeAt = (count: number) => (isFrozen = count === at);
  const send = (name: string, request: () => unknown, signal: AbortSignal) => {
    if (isFrozen) {
      if (!signal.aborted) late.push(name);
      return Promise.reject(new ClusterError('timeout', 'The request was cancelled.'));
    }
    freezeAt((sent += 1));
    return request();
  };
  const watched = new Proxy(driver, {
    get: (_, name) => {
      const method = Reflect.get(driver, name) as ((...values: unknown[]) => unknown) | undefined;
      // A promise asks whether it has `then`.
      if (!method) return undefined;
      return (...values: unknown[]) =>
        send(String(name), () => method.apply(driver, values), values.at(-1) as AbortSignal);
    },
  });
  jest.spyOn(fixture.simulated, 'driverOf').mockImplementation(() => {
    freezeAt(0);
    return Promise.resolve(watched);
  });
  const context = {
    get signal() {
      return isFrozen ? lost : held;
    },
  };
  await step(context).catch(() => undefined);
  return { isFrozen, late };
}

const exposed = async (): Promise<ExposedService> => {
  const { pod_name } = await fixture.running(team);
  const asked = { pod_name, service_name: `s-${newId()}`, port: 80, protocol: 'HTTP' } as const;
  return fixture.untilExposed(
    await fixture.call(exposedServices.expose, asked, team.member),
    ({ status }) => status === 'active',
  );
};
const podId = async () => (await fixture.running(team)).pod_id;
const vmId = async () => {
  return (await fixture.runningVm(team)).instance_id;
};
const volumeId = async () => (await fixture.volume(team)).volume_id;
const otherDoor = async () => ({ port: 81, protocol: 'HTTP', externalPort: await freePort(), isSsl: false }) as const;

const cases: Record<string, () => Promise<Step>> = {
  'starts a pod': async () => stepOf(fixture.get(PodSteps), await podId(), { state: 'pulling' }),
  'stops a pod': async () => stepOf(fixture.get(PodSteps), await podId(), { state: 'stopping' }),
  'restarts a pod': async () => stepOf(fixture.get(PodSteps), await podId(), { state: 'restarting' }),
  'starts a VM again': async () => stepOf(fixture.get(VmSteps), await vmId(), { state: 'starting', run: 2 }),
  'tells a VM its keys': async () => stepOf(fixture.get(VmSteps), await vmId(), { placedKeys: 'others' }),
  'deletes a VM': async () => stepOf(fixture.get(VmSteps), await vmId(), { state: 'deleting' }),
  'reviews an exposed service': async () => stepOf(fixture.get(ExposureSteps), (await exposed()).service_id),
  'moves an exposed service': async () =>
    stepOf(fixture.get(ExposureSteps), (await exposed()).service_id, { state: 'updating', next: await otherDoor() }),
  'deletes an exposed service': async () =>
    stepOf(fixture.get(ExposureSteps), (await exposed()).service_id, { state: 'deleting' }),
  'makes a volume': async () => stepOf(fixture.get(VolumeSteps), await volumeId(), { state: 'pending' }),
  'grows a volume': async () => stepOf(fixture.get(VolumeSteps), await volumeId(), { state: 'growing' }),
  'deletes a volume': async () => stepOf(fixture.get(VolumeSteps), await volumeId(), { state: 'deleting' }),
};

describe('a process that was frozen until its claim ran out', () => {
  it.each(Object.entries(cases))('sends nothing more to the cluster in a step that %s', async (_, prepare) => {
    const driver = await fixture.simulated.driverOf('1');
    const step = await prepare();
    let at = 0;
    for (; ; at += 1) {
      const { isFrozen, late } = await frozenAt(at, driver, step);
      expect(late).toEqual([]);
      if (!isFrozen) break;
    }
    // Frozen while it waited for the driver, and for an answer at least.
    expect(at).toBeGreaterThan(1);
  });

  it.each<[string, Partial<ExposureEntity>]>([
    ['deletes', { state: 'deleting' }],
    ['moves', { state: 'updating' }],
  ])('closes not even its own door where its step %s a service that has changed meanwhile', async (_, more) => {
    const { service_id, external_port: externalPort } = await exposed();
    const next = { ...(await otherDoor()), externalPort };
    const frozen = await stepOf(fixture.get(ExposureSteps), service_id, { next, ...more });
    // As after an update that came to nothing: the door is current again.
    await fixture.query('UPDATE exposure SET revision = revision + 1 WHERE service_id = $1', [service_id]);
    const driver = await fixture.simulated.driverOf('1');
    const signal = new AbortController().signal;
    await expect(frozen({ signal })).rejects.toMatchObject({ code: 'changed' });
    const [sight] = await driver.observeDoors([{ kind: 'door', id: `svc-${service_id}`, run: 1 }], signal);
    expect(sight?.phase).toBe('open');
  });

  it('closes no door that another process has made current, though its clock stood still too', async () => {
    const service = await exposed();
    const frozen = await stepOf(fixture.get(ExposureSteps), service.service_id);
    await fixture.call(exposedServices.update, { service_id: service.service_id, port: 81 }, team.member);
    await fixture.untilExposed(service, ({ status }) => status === 'active');
    const driver = await fixture.simulated.driverOf('1');
    const signal = new AbortController().signal;
    await expect(frozen({ signal })).rejects.toMatchObject({ code: 'changed' });
    const refs = [1, 2].map((run) => ({ kind: 'door', id: `svc-${service.service_id}`, run }) as const);
    expect((await driver.observeDoors(refs, signal)).map(({ phase }) => phase)).toEqual(['absent', 'open']);
  });
});
