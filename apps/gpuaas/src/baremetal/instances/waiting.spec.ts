import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { baremetalNodes, type BaremetalNodeSetAside } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { DataSource } from 'typeorm';
import type { ToldTeam } from '../../gpuaas-fixture.js';
import { errorOf } from '../../gpuaas-fixture.js';
import { BaremetalInstanceSteps } from './baremetal-instance-steps.js';
import { pickNode } from '../nodes/host-matching.js';
import { nodesInMaintenance } from '../nodes/baremetal-figures.js';
import { BaremetalFixture } from '../baremetal-fixture.js';

let fixture: BaremetalFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BaremetalFixture.start({ sealKeys: undefined }).then(async (bare) => {
    // Without a key for secrets there is no bare metal.
    expect(await errorOf(bare.register())).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('ATOLL_SEAL_KEYS'),
    });
    await bare.stop();
    return BaremetalFixture.start();
  });
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const sized = (gpu_model: string, gpu_count: number) => ({
  specs: { gpu_model, gpu_count, cpu_cores: 64, memory_gb: 512 },
});
const statuses = (instances: { instance_id: string }[]) =>
  Promise.all(instances.map(async (instance) => (await fixture.instance(team, instance)).status));

describe('requests for one node', () => {
  it('of many at once are given it once', async () => {
    const model = `race-${newId().slice(-8)}`;
    await fixture.available('', sized(model, 8));
    const asked = await Promise.all(
      Array.from({ length: 8 }, () => fixture.request(team, { specs: { gpu_model: model } })),
    );
    await fixture.settle();
    expect((await statuses(asked)).sort()).toEqual(['Active', ...Array.from({ length: 7 }, () => 'Requested')]);
  });

  it('that are touched while their step finds that they have to wait are free, and look again', async () => {
    const model = `touched-${newId().slice(-8)}`;
    const node = await fixture.available('', sized(model, 8));
    await fixture.gpuaas.call(baremetalNodes.update, { node_id: node.node_id, maintenance: true });
    const steps = fixture.gpuaas.get(BaremetalInstanceSteps);
    const step = steps.step.bind(steps);
    const stepping = jest.spyOn(steps, 'step').mockImplementationOnce(async (row, context) => {
      const found = await step(row, context);
      await fixture.gpuaas.get(DataSource).transaction((manager) => steps.touch(manager, [row.instanceId]));
      return found;
    });
    const { instance_id } = await fixture.settled(team, { specs: { gpu_model: model } });
    expect(stepping.mock.calls.filter(([row]) => row.instanceId === instance_id)).toHaveLength(2);
    stepping.mockRestore();
    const [row] = await fixture.gpuaas.query(
      'SELECT state, waiting_reason, claim_token, due_at FROM baremetal_instance WHERE instance_id = $1',
      [instance_id],
    );
    expect(row).toEqual({
      state: 'requested',
      waiting_reason: expect.stringMatching(/./),
      claim_token: null,
      due_at: null,
    });
  });

  it('that wait are served in the order of arrival', async () => {
    const model = `order-${newId().slice(-8)}`;
    await fixture.available('', sized(model, 8));
    const asked = [];
    for (let at = 0; at < 4; at += 1) asked.push(await fixture.request(team, { specs: { gpu_model: model } }));
    for (const [at, instance] of asked.entries()) {
      await fixture.settle();
      const [before, after] = [asked.slice(0, at).map(() => 'Released'), asked.slice(at + 1).map(() => 'Requested')];
      expect(await statuses(asked)).toEqual([...before, 'Active', ...after]);
      await fixture.end(team, instance);
    }
  });

  it('are given no node that was set aside before it was locked', async () => {
    const model = `aside-${newId().slice(-8)}`;
    const best = await fixture.available('', sized(model, 1));
    const second = await fixture.available('', sized(model, 2));
    const { instance_id } = await fixture.request(team, { specs: { gpu_model: model } });
    await fixture.gpuaas.get(DataSource).transaction(async (manager) => {
      const query = manager.query.bind(manager);
      jest.spyOn(manager, 'query').mockImplementationOnce(async (text, values) => {
        const candidates: unknown = await query(text, values);
        await fixture.gpuaas.call(baremetalNodes.update, { node_id: best.node_id, maintenance: true });
        return candidates;
      });
      expect((await pickNode(manager, instance_id)).nodeId).toBe(second.node_id);
    });
  });

  it('go past an earlier one that the node does not fit', async () => {
    const model = `fit-${newId().slice(-8)}`;
    const large = await fixture.available('', sized(model, 8));
    await fixture.settled(team, { specs: { gpu_model: model, gpu_count: 8 } });
    const waiting = await fixture.settled(team, { specs: { gpu_model: model, gpu_count: 8 } });
    await fixture.available('', sized(model, 2));
    const small = await fixture.settled(team, { specs: { gpu_model: model, gpu_count: 1 } });
    expect(await statuses([waiting, small])).toEqual(['Requested', 'Active']);
    expect((await fixture.node(large.node_id)).status).toBe('In service');
  });

  it.each(['retired', 'deleted'] as const)('that only this node could meet fail at once when it is %s', async (how) => {
    const model = `gone-${newId().slice(-8)}`;
    const { node_id } = await fixture.available('', sized(model, 8));
    await fixture.gpuaas.call(baremetalNodes.update, { node_id, maintenance: true });
    const waiting = await fixture.settled(team, { specs: { gpu_model: model } });
    expect(waiting.status).toBe('Requested');
    if (how === 'retired') await fixture.gpuaas.call(baremetalNodes.update, { node_id, retired: true });
    else await fixture.gpuaas.call(baremetalNodes.delete, { node_id });
    await fixture.work();
    expect(await fixture.instance(team, waiting)).toMatchObject({ status: 'Failed', error: { code: 'spec_mismatch' } });
  });

  it('leave a free node to an earlier one that waits for it', async () => {
    const model = `first-${newId().slice(-8)}`;
    const node = await fixture.available('', sized(model, 8));
    await fixture.gpuaas.call(baremetalNodes.update, { node_id: node.node_id, maintenance: true });
    const first = await fixture.settled(team, { specs: { gpu_model: model } });
    expect(first.reason).toBe('The only matching node is not free.');
    await fixture.gpuaas.query('UPDATE baremetal_node SET is_maintenance = false WHERE node_id = $1', [node.node_id]);
    const second = await fixture.request(team, { specs: { gpu_model: model } });
    await fixture.settle();
    expect(await statuses([first, second])).toEqual(['Active', 'Requested']);
    expect((await fixture.instance(team, second)).reason).toMatch(/is not free|goes first/);
  });

  it('are found by a sweep where nothing has told them of a free node', async () => {
    const model = `sweep-${newId().slice(-8)}`;
    const node = await fixture.available('', sized(model, 8));
    await fixture.gpuaas.query('UPDATE baremetal_node SET is_maintenance = true WHERE node_id = $1', [node.node_id]);
    const instance = await fixture.settled(team, { specs: { gpu_model: model } });
    await fixture.gpuaas.query('UPDATE baremetal_node SET is_maintenance = false WHERE node_id = $1', [node.node_id]);
    await fixture.work();
    expect(await statuses([instance])).toEqual(['Requested']);
    await fixture.sweep();
    await fixture.settle();
    expect(await statuses([instance])).toEqual(['Active']);
  });

  it('fail when their time is over, with what they waited for', async () => {
    const model = `late-${newId().slice(-8)}`;
    await fixture.available('', sized(model, 8));
    await fixture.settled(team, { specs: { gpu_model: model } });
    const waiting = await fixture.settled(team, { specs: { gpu_model: model } });
    await fixture.pass(24 * 3_600 + 1);
    await fixture.work();
    expect(await fixture.instance(team, waiting)).toMatchObject({
      status: 'Failed',
      error: {
        code: 'no_capacity',
        step: 'allocate',
        message: 'No node became free in time. The only matching node is not free.',
      },
    });
  });

  it('fail as soon as nothing can match them any more', async () => {
    const model = `gone-${newId().slice(-8)}`;
    const node = await fixture.available('', sized(model, 8));
    await fixture.settled(team, { specs: { gpu_model: model } });
    const waiting = await fixture.settled(team, { specs: { gpu_model: model } });
    await fixture.gpuaas.call(baremetalNodes.update, { node_id: node.node_id, retired: true });
    await fixture.work();
    expect(await fixture.instance(team, waiting)).toMatchObject({ status: 'Failed', error: { code: 'spec_mismatch' } });
    expect((await errorOf(fixture.request(team, { specs: { gpu_model: model } }))).code).toBe('spec_mismatch');
  });
});

describe('a node on which nothing can be provisioned', () => {
  it('gets no further tenant after three failures in a row; the operator’s word brings it back', async () => {
    const model = `fails-${newId().slice(-8)}`;
    const node = await fixture.available('keys-fail', sized(model, 8));
    for (let count = 1; count <= 3; count += 1) {
      expect((await fixture.settled(await fixture.team(), { specs: { gpu_model: model } })).status).toBe('Failed');
      expect((await fixture.node(node.node_id)).maintenance).toBe(count === 3);
    }
    const kept = await fixture.node(node.node_id);
    expect(kept).toMatchObject({
      status: 'Available',
      reason: expect.stringMatching(/^3 instances in a row .* The host failed: keys\.$/),
    });
    const inMaintenance = async () => (await nodesInMaintenance.read(fixture.gpuaas.app)).failures ?? 0;
    const counted = await inMaintenance();
    expect(counted).toBeGreaterThan(0);
    expect((await fixture.settled(team, { specs: { gpu_model: model } })).status).toBe('Requested');
    await fixture.gpuaas.query(`UPDATE baremetal_node SET name = $2 WHERE node_id = $1`, [
      node.node_id,
      `mended-${newId()}`,
    ]);
    await fixture.gpuaas.call(baremetalNodes.update, { node_id: node.node_id, maintenance: false });
    expect(await inMaintenance()).toBe(counted - 1);
    await fixture.settle();
    expect((await fixture.node(node.node_id)).status).toBe('In service');
    const isMeant = ({ node_id }: BaremetalNodeSetAside) => node_id === node.node_id;
    const told = await fixture.heard<BaremetalNodeSetAside>('gpuaas.baremetal_node_set_aside', (all) =>
      all.some(isMeant),
    );
    expect(told.filter(isMeant)).toMatchObject([{ node_id: node.node_id, code: 'failures', reason: kept.reason }]);
  });

  it('is taken from nobody by one team, whose own keys and log-ins may be what fails; and that team gets another', async () => {
    const model = `own-${newId().slice(-8)}`;
    const node = await fixture.available('verify-fail', sized(model, 1));
    for (let count = 1; count <= 5; count += 1)
      expect((await fixture.settled(team, { specs: { gpu_model: model } })).status).toBe('Failed');
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Available', maintenance: false });
    await fixture.available('', sized(model, 8));
    const another = await fixture.settled(team, { specs: { gpu_model: model } });
    expect(another.status).toBe('Active');
    await fixture.end(team, another);
    await fixture.settle();
    // To others the node comes first that fits best.
    for (let count = 2; count <= 3; count += 1)
      expect((await fixture.settled(await fixture.team(), { specs: { gpu_model: model } })).status).toBe('Failed');
    expect((await fixture.node(node.node_id)).maintenance).toBe(true);
  });

  it.each(['user', 'keys', 'password'])(
    'gets no further tenant after three failures of one team at %s, before it can reach the host',
    async (step) => {
      const model = `early-${newId().slice(-8)}`;
      const node = await fixture.available(`${step}-fail`, sized(model, 8));
      for (let count = 1; count <= 3; count += 1) {
        expect((await fixture.settled(team, { specs: { gpu_model: model } })).status).toBe('Failed');
        expect((await fixture.node(node.node_id)).maintenance).toBe(count === 3);
      }
    },
  );

  it('with another host key goes into maintenance by itself, and comes back by the operator alone', async () => {
    const model = `rekeyed-${newId().slice(-8)}`;
    const node = await fixture.available('', sized(model, 8));
    const rename = (name: string) =>
      fixture.gpuaas.query('UPDATE baremetal_node SET name = $2 WHERE node_id = $1', [node.node_id, name]);
    const look = async () => {
      await fixture.pass(61);
      await fixture.settle();
      return fixture.node(node.node_id);
    };
    // Where it was away before, too.
    await rename(`away-${newId()}.reach-refuse`);
    const { unreachable_since } = await look();
    await rename(`other-${newId()}.reach-rekeyed`);
    const found = await look();
    expect(found).toMatchObject({ maintenance: true, unreachable_since, reason: expect.stringContaining('host key') });
    const isMeant = ({ node_id }: BaremetalNodeSetAside) => node_id === node.node_id;
    const told = await fixture.heard<BaremetalNodeSetAside>('gpuaas.baremetal_node_set_aside', (all) =>
      all.some(isMeant),
    );
    expect(told.filter(isMeant)).toMatchObject([{ code: 'host_key_changed' }]);
    await rename(`back-${newId()}`);
    expect(await look()).toMatchObject({ maintenance: true, unreachable_since: null });
    const waiting = await fixture.settled(team, { specs: { gpu_model: model } });
    expect(waiting.status).toBe('Requested');
    await fixture.gpuaas.call(baremetalNodes.update, { node_id: node.node_id, maintenance: false });
    await fixture.settle();
    expect((await fixture.instance(team, waiting)).status).toBe('Active');
  });

  it('counts failures anew after an instance that became Active', async () => {
    const model = `mended-${newId().slice(-8)}`;
    const node = await fixture.available('keys-fail', sized(model, 8));
    const rename = (faults: string) =>
      fixture.gpuaas.query('UPDATE baremetal_node SET name = $2 WHERE node_id = $1', [
        node.node_id,
        `metal-${newId()}.${faults}`,
      ]);
    const ask = (asking: ToldTeam) => fixture.settled(asking, { specs: { gpu_model: model } });
    const fail = async () => expect((await ask(await fixture.team())).status).toBe('Failed');
    for (let count = 0; count < 2; count += 1) await fail();
    await rename('');
    const well = await ask(team);
    expect(well.status).toBe('Active');
    await fixture.end(team, well);
    await fixture.settle();
    await rename('keys-fail');
    for (let count = 0; count < 2; count += 1) await fail();
    expect((await fixture.node(node.node_id)).maintenance).toBe(false);
  });

  it('that cannot be reached is flagged and not offered, and serves who waits once it can', async () => {
    const model = `away-${newId().slice(-8)}`;
    const node = await fixture.available('', sized(model, 8));
    const rename = (name: string) =>
      fixture.gpuaas.query('UPDATE baremetal_node SET name = $2 WHERE node_id = $1', [node.node_id, name]);
    await rename(`away-${newId()}.reach-refuse`);
    await fixture.pass(61);
    await fixture.work();
    expect((await fixture.node(node.node_id)).unreachable_since).not.toBeNull();
    const waiting = await fixture.settled(team, { specs: { gpu_model: model } });
    expect(waiting.status).toBe('Requested');
    await rename(`back-${newId()}`);
    await fixture.pass(61);
    await fixture.settle();
    expect(await fixture.instance(team, waiting)).toMatchObject({ status: 'Active', unreachable_since: null });
    await rename(`away-${newId()}.reach-refuse`);
    await fixture.pass(61);
    await fixture.work();
    const active = await fixture.instance(team, waiting);
    expect([active.status, active.unreachable_since === null]).toEqual(['Active', false]);
  });
});
