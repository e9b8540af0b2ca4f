import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { newId } from '@atoll/database';
import type { SharingMode } from '@atoll/gpu';
import { GpuaasFixture } from '../gpuaas-fixture.js';
import { NodeDriver, type DeviceLayout, type DeviceRef, type LeasedSlice } from './node-driver.js';
import { SimulatedFaults, type FaultKind, type SimulatedOperation } from './simulated-faults.js';

/** Longer than any spec here takes: devices arrive by what `pass` adds, and not before. */
const switchSeconds = 600;
let fixture: GpuaasFixture;
let driver: NodeDriver;
let faults: SimulatedFaults;
let device: DeviceRef;
beforeAll(async () => {
  fixture = await GpuaasFixture.start({ simulatedSwitchMs: 1_000 * switchSeconds });
  driver = fixture.get(NodeDriver);
  faults = fixture.get(SimulatedFaults);
});
beforeEach(async () => {
  device = await aDevice();
});
afterAll(() => fixture.stop());

const { signal } = new AbortController();

async function aDevice(nodeName = `node-${newId()}`): Promise<DeviceRef> {
  const made = { gpuaasId: '1', nodeName, uuid: `GPU-${newId()}` };
  await driver.initialise(made, [made.uuid], [], signal);
  return made;
}

const layout = (mode: SharingMode, generation: number): DeviceLayout => ({
  mode,
  mechanism: 'mps',
  replicas: 4,
  generation,
});
const request = (mode: SharingMode, generation: number, of = device) =>
  driver.request(of, layout(mode, generation), signal);
const observe = (of = device) => driver.observe(of, signal);
const slice = (leaseId: string, of = device, more: Partial<LeasedSlice> = {}): LeasedSlice => ({
  ...of,
  leaseId,
  profile: 'mps-4',
  slotStart: 0,
  ...more,
});
const inject = (operation: SimulatedOperation, kind: FaultKind, times?: number) =>
  faults.inject(device.nodeName, operation, kind, times);

describe('a simulated device', () => {
  it('is in Spatial at first, at rest and held by nobody', async () => {
    expect(await observe()).toEqual({ mode: 'Spatial', generation: 0, state: 'settled', reason: null, holders: [] });
  });

  it('that its node does not have says so', async () => {
    const report = await observe({ ...device, uuid: 'GPU-none' });
    expect(report).toMatchObject({ mode: null, state: 'failed', reason: 'The node does not have this device.' });
  });

  it('switches when it is asked to, after a while, and not before', async () => {
    await request('Temporal', 2);
    expect(await observe()).toMatchObject({ mode: 'Spatial', generation: 2, state: 'switching' });
    await fixture.pass(switchSeconds / 2);
    expect((await observe()).state).toBe('switching');
    await fixture.pass(switchSeconds / 2);
    expect(await observe()).toMatchObject({ mode: 'Temporal', generation: 2, state: 'settled' });
  });

  it('does nothing for a generation that it was asked for before, or for an older one', async () => {
    await request('Temporal', 4);
    await fixture.pass(switchSeconds);
    await request('Spatial', 4);
    await request('Spatial', 2);
    expect(await observe()).toMatchObject({ mode: 'Temporal', generation: 4, state: 'settled' });
  });

  it('asked for something newer while it switches goes there', async () => {
    await request('Temporal', 2);
    await request('Spatial', 3);
    await fixture.pass(switchSeconds);
    expect(await observe()).toMatchObject({ mode: 'Spatial', generation: 3, state: 'settled' });
  });

  it('is held by the leases that occupy it, each once, until they are vacated', async () => {
    await driver.occupy([slice('1'), slice('2')], signal);
    await driver.occupy([slice('2')], signal);
    expect((await observe()).holders.toSorted()).toEqual(['1', '2']);
    await driver.vacate([slice('1'), slice('9')], signal);
    expect((await observe()).holders).toEqual(['2']);
    await driver.confirm([slice('7')], signal);
    expect((await observe()).holders).toEqual(['2']);
  });

  it('tells the instances of what MIG cut, and of nothing else', async () => {
    const slices = [
      slice('1', device, { profile: '2g.20gb', slotStart: 2 }),
      slice('2', device, { profile: '1g.10gb', slotStart: null }),
      slice('3'),
    ];
    for (const answer of [await driver.confirm(slices, signal), await driver.occupy(slices, signal)]) {
      expect([...answer.keys()]).toEqual(['1']);
      expect(answer.get('1')).toBeGreaterThan(0);
    }
  });

  it('whose node is initialised keeps its mode and those who have a lease; whoever else held it is ended', async () => {
    await request('Temporal', 2);
    await fixture.pass(switchSeconds);
    await driver.occupy([slice('1'), slice('2')], signal);
    await driver.initialise(device, [device.uuid], ['2', '3'], signal);
    expect(await observe()).toMatchObject({ mode: 'Temporal', generation: 2, holders: ['2'] });
  });

  it('whose node is reset is as new, and remembers which generation it was asked for last', async () => {
    await request('Temporal', 2);
    await fixture.pass(switchSeconds);
    await driver.occupy([slice('1')], signal);
    await driver.reset(device, [device.uuid], signal);
    expect(await observe()).toEqual({ mode: 'Spatial', generation: 2, state: 'settled', reason: null, holders: [] });
  });

  it('can be switched under tenants but for MIG', () => {
    expect(
      ['mig', 'mps', 'time_slicing'].filter((mechanism) => driver.canSwitchUnderTenants(mechanism as 'mig')),
    ).toEqual(['mps', 'time_slicing']);
  });
});

describe('a switch that goes wrong', () => {
  it('fails: the device is where it was and says why, until its node is initialised', async () => {
    await inject('switch', 'fail');
    await request('Temporal', 2);
    expect(await observe()).toMatchObject({
      mode: 'Spatial',
      generation: 2,
      state: 'failed',
      reason: 'The device could not be switched.',
    });
    await driver.initialise(device, [device.uuid], [], signal);
    expect(await observe()).toMatchObject({ mode: 'Spatial', state: 'settled', reason: null });
  });

  it('hangs: it never ends, until its node is initialised or it is asked for something newer', async () => {
    for (const [at, end] of [
      () => driver.initialise(device, [device.uuid], [], signal),
      () => request('Spatial', 9),
    ].entries()) {
      await inject('switch', 'hang');
      await request('Temporal', 2 + 2 * at);
      await fixture.pass(86_400);
      expect((await observe()).state).toBe('switching');
      await end();
      await fixture.pass(switchSeconds);
      expect(await observe()).toMatchObject({ mode: 'Spatial', state: 'settled' });
    }
  });

  it('is lied about: the device says that it is done, and stays where it was', async () => {
    await inject('switch', 'lie');
    await request('Temporal', 2);
    await fixture.pass(switchSeconds);
    expect(await observe()).toMatchObject({ mode: 'Spatial', generation: 2, state: 'settled', reason: null });
  });

  it('is refused: the device never heard of it', async () => {
    await inject('switch', 'refuse');
    await expect(request('Temporal', 2)).rejects.toMatchObject({ code: 'node_refused', isPermanent: false });
    expect(await observe()).toMatchObject({ generation: 0, state: 'settled' });
  });
});

describe('a node that does something wrong', () => {
  const asked: Record<
    Exclude<SimulatedOperation, 'switch'>,
    (of: DeviceRef, until: AbortSignal) => Promise<unknown>
  > = {
    init: (of, until) => driver.initialise(of, [of.uuid], [], until),
    observe: (of, until) => driver.observe(of, until),
    confirm: (of, until) => driver.confirm([slice('1', of)], until),
    occupy: (of, until) => driver.occupy([slice('1', of)], until),
    vacate: (of, until) => driver.vacate([slice('1', of)], until),
  };
  const operations = Object.entries(asked) as [
    SimulatedOperation,
    (of: DeviceRef, until: AbortSignal) => Promise<unknown>,
  ][];

  it.each(operations)(
    '%s: refuses for now, fails for good, and ends what hangs when nobody waits any more',
    async (operation, ask) => {
      await inject(operation, 'refuse');
      await expect(ask(device, signal)).rejects.toMatchObject({ code: 'node_refused', isPermanent: false });
      await inject(operation, 'fail');
      await expect(ask(device, signal)).rejects.toMatchObject({ code: 'node_failed', isPermanent: true });
      await inject(operation, 'hang');
      const waiting = new AbortController();
      const answer = ask(device, waiting.signal);
      waiting.abort();
      await expect(answer).rejects.toThrow();
      await ask(device, signal);
    },
  );

  it('does so as often as was asked for, and no more once it is mended', async () => {
    await inject('confirm', 'refuse', 2);
    const confirm = () => driver.confirm([slice('1')], signal);
    await expect(confirm()).rejects.toThrow();
    await expect(confirm()).rejects.toThrow();
    await confirm();
    await inject('confirm', 'refuse', 5);
    await faults.mend(device.nodeName);
    await confirm();
  });

  it('is known by its name, always; what is injected goes before it', async () => {
    const named = await aDevice(`gpu-${newId()}.confirm-refuse.vacate-busy`);
    for (let time = 0; time < 3; time += 1)
      await expect(driver.confirm([slice('1', named)], signal)).rejects.toMatchObject({ code: 'node_refused' });
    await faults.inject(named.nodeName, 'confirm', 'fail');
    await expect(driver.confirm([slice('1', named)], signal)).rejects.toMatchObject({ code: 'node_failed' });
    await driver.occupy([slice('1', named)], signal);
    await driver.vacate([slice('1', named)], signal);
    expect((await observe(named)).holders).toEqual(['1']);
  });

  it('stays busy: memory of what has stopped is held, or of what nobody knows', async () => {
    await driver.occupy([slice('1')], signal);
    await inject('vacate', 'lie');
    await driver.vacate([slice('1')], signal);
    expect((await observe()).holders).toEqual(['1']);
    await inject('observe', 'busy');
    expect((await observe()).holders).toEqual(['1', 'another process']);
    expect((await observe()).holders).toEqual(['1']);
  });

  it('lies about having been initialised: it does not have the device', async () => {
    const other = { ...device, uuid: `GPU-${newId()}` };
    await inject('init', 'lie');
    await driver.initialise(other, [other.uuid], [], signal);
    expect((await observe(other)).mode).toBeNull();
  });

  it('leaves the other nodes alone', async () => {
    const other = await aDevice();
    await inject('confirm', 'fail', 100);
    await driver.confirm([slice('1', other)], signal);
  });
});
