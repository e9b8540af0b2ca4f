import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { baremetalNodes, type BaremetalInstance, type BaremetalNode } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { DataSource, type EntityManager } from 'typeorm';
import type { ToldTeam } from '../../gpuaas-fixture.js';
import { BaremetalFixture } from '../baremetal-fixture.js';
import { BaremetalInstanceSteps } from './baremetal-instance-steps.js';
import { BaremetalNodeSteps } from '../nodes/baremetal-node-steps.js';

let fixture: BaremetalFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const atRest = { state: 'cancelled', due_at: null, parked_until: null, attempts: 0, last_error: null };
const rowOf = async ({ instance_id }: BaremetalInstance) =>
  (
    await fixture.gpuaas.query(
      'SELECT state, due_at, parked_until, attempts, last_error FROM baremetal_instance WHERE instance_id = $1',
      [instance_id],
    )
  )[0];

/** Two requests that wait, the earlier one first, and as many free nodes for which they do, without their knowing. */
async function waiting(count: 1 | 2): Promise<{ requests: BaremetalInstance[]; nodes: BaremetalNode[] }> {
  const gpu_model = `ended-${newId().slice(-8)}`;
  const nodes: BaremetalNode[] = [];
  for (let at = 0; at < count; at += 1) {
    const node = await fixture.available('', { specs: { gpu_model, gpu_count: 8, cpu_cores: 64, memory_gb: 512 } });
    await fixture.gpuaas.call(baremetalNodes.update, { node_id: node.node_id, maintenance: true });
    nodes.push(node);
  }
  const requests = [];
  for (let at = 0; at < 2; at += 1) requests.push(await fixture.settled(team, { specs: { gpu_model } }));
  await fixture.gpuaas.query('UPDATE baremetal_node SET is_maintenance = false WHERE node_id = ANY ($1)', [
    nodes.map(({ node_id }) => node_id),
  ]);
  return { requests, nodes };
}

async function allocate(manager: EntityManager, { instance_id }: BaremetalInstance): Promise<void> {
  const steps = fixture.gpuaas.get(BaremetalInstanceSteps);
  const row = (await steps.lock(manager, instance_id))!;
  const found = await steps.step(row, { signal: new AbortController().signal });
  if (typeof found === 'string' || !('decide' in found)) throw new Error('It is not allocated.');
  await found.decide(manager, row);
}

type Waiting = Awaited<ReturnType<typeof waiting>>;
const nodeSteps = () => fixture.gpuaas.get(BaremetalNodeSteps);

it.each<[string, 1 | 2, 0 | 1, (manager: EntityManager, given: Waiting) => Promise<void>]>([
  ['an earlier one is given its node', 2, 1, (manager, { requests }) => allocate(manager, requests[0]!)],
  ['a later one leaves the node to it', 1, 0, (manager, { requests }) => allocate(manager, requests[1]!)],
  ['a node becomes free', 1, 0, (manager, { nodes }) => nodeSteps().offer(manager, nodes[0]!.node_id)],
  ['a node is retired', 1, 1, (manager, { nodes }) => nodeSteps().reconsider(manager, nodes[0]!.node_id)],
])('a request that ends after it was chosen to look again, as %s, is not made due', async (_, count, at, choose) => {
  const given = await waiting(count);
  const ended = given.requests[at]!;
  let isEnded = false;
  await fixture.gpuaas.get(DataSource).transaction(async (manager) => {
    const query = manager.query.bind(manager);
    jest.spyOn(manager, 'query').mockImplementation(async (text, values) => {
      const rows: unknown = await query(text, values);
      if (isEnded || !text.includes('baremetal_instance w')) return rows;
      isEnded = true;
      await fixture.end(team, ended);
      return rows;
    });
    await choose(manager, given);
  });
  expect(isEnded).toBe(true);
  expect(await rowOf(ended)).toEqual(atRest);
});

it('a cancelled request whose step has failed again and again is at rest, and shows no error', async () => {
  const { requests } = await waiting(1);
  const request = requests[0]!;
  await fixture.end(team, request);
  await fixture.gpuaas.query(
    `UPDATE baremetal_instance SET due_at = clock_timestamp(), attempts = 9,
       last_error = '{"code": "internal", "message": "An internal error.", "at": "2026-01-01T00:00:00Z"}' WHERE instance_id = $1`,
    [request.instance_id],
  );
  await fixture.work();
  expect(await rowOf(request)).toEqual(atRest);
  expect(await fixture.instance(team, request)).toMatchObject({ status: 'Cancelled', reason: null, error: null });
});
