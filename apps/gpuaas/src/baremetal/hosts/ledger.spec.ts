import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { baremetalNodes, type BaremetalNode } from '@atoll/contracts/gpuaas';
import { userKeysChanged } from '@atoll/contracts/pods';
import { membershipChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { generateKeyPair } from '@atoll/ssh';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { BaremetalFixture } from '../baremetal-fixture.js';
import { Ledger } from './ledger.js';

let fixture: BaremetalFixture;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
});
afterAll(() => fixture.stop());

const insert = ({ node_id }: BaremetalNode, count: number, days: number) =>
  fixture.gpuaas.query(
    `INSERT INTO baremetal_attempt (node_id, action, step, started_at, ended_at, outcome)
     SELECT $1, 'check', 'inspect', now() - $3::int * interval '1 day', now(), 'succeeded' FROM generate_series(1, $2::int)`,
    [node_id, count, days],
  );
async function countOf({ node_id }: BaremetalNode): Promise<number> {
  const [row] = await fixture.gpuaas.query<{ count: number }>(
    'SELECT count(*)::int FROM baremetal_attempt WHERE node_id = $1',
    [node_id],
  );
  return row?.count ?? 0;
}
async function check({ node_id }: BaremetalNode): Promise<void> {
  await fixture.gpuaas.call(baremetalNodes.check, { node_id });
  await fixture.settle();
}

it('attempts go after 30 days, but for the last 100 of each node', async () => {
  const [old, young] = [await fixture.available(), await fixture.available()];
  await fixture.gpuaas.query(
    `UPDATE baremetal_attempt SET started_at = now() - interval '32 days' WHERE node_id = $1`,
    [old.node_id],
  );
  await insert(old, 250, 31);
  await insert(young, 250, 29);
  for (let count = 0; count < 4; count += 1) for (const node of [old, young]) await check(node);
  // Of the young one also the first check. The others are four more.
  expect([await countOf(old), await countOf(young)]).toEqual([101, 255]);
  const [{ last_ones = 0 } = {}] = await fixture.gpuaas.query<{ last_ones: number }>(
    `SELECT count(*)::int AS last_ones FROM baremetal_attempt WHERE node_id = $1 AND started_at > now() - interval '1 day'`,
    [old.node_id],
  );
  expect(last_ones).toBe(4);
});

it('an attempt interrupts what is open of its own instance alone, not a check or another instance of the same node', async () => {
  const { node_id } = await fixture.available();
  const ledger = fixture.gpuaas.get(Ledger);
  const attempt = (instanceId: string | null, work = () => Promise.resolve()) =>
    ledger.record({ instanceId, nodeId: node_id, action: 'keys', step: 'change_keys' }, work);
  const [one, other] = [newId(), newId()];
  await attempt(one, () => attempt(other, () => attempt(null, () => attempt(one))));
  const { manager } = fixture.gpuaas.get(DataSource);
  const byInstance = await ledger.ofInstances(manager, [one, other]);
  expect([one, other].map((id) => byInstance.get(id)?.map(({ outcome }) => outcome))).toEqual([
    ['interrupted', 'succeeded'],
    ['succeeded'],
  ]);
  const ofNode = (await ledger.ofNodes(manager, [node_id])).get(node_id) ?? [];
  expect(ofNode.at(-1)).toMatchObject({ step: 'change_keys', outcome: 'succeeded' });
});

it('a try reads no more of its node’s history than it forgets', async () => {
  const node = await fixture.available();
  await insert(node, 5_000, 1);
  await fixture.gpuaas.query('VACUUM (ANALYZE) baremetal_attempt');
  const sent = await allStatementsDuring(() => check(node));
  const [begin] = sent.filter(({ text }) => /INSERT INTO baremetal_attempt/.test(text));
  expect(begin && (await mostRowsRead(fixture.gpuaas, begin))).toBeLessThan(1_000);
});

it('a host that does not take the new keys of its team is tried ever more seldom, and at once when it is back', async () => {
  const team = await fixture.team();
  const user_id = newId();
  const model = `keys-${newId().slice(-8)}`;
  const node = await fixture.available('', { specs: { gpu_model: model, gpu_count: 1, cpu_cores: 8, memory_gb: 64 } });
  const instance = await fixture.settled(team, { specs: { gpu_model: model } });
  const rename = (name: string) =>
    fixture.gpuaas.query('UPDATE baremetal_node SET name = $2 WHERE node_id = $1', [node.node_id, name]);
  await rename('away.reach-refuse.keys-refuse');
  await fixture.gpuaas.tell(membershipChanged, { team_id: team.team_id, user_id, role: 'member', revision: 1 });
  await fixture.gpuaas.tell(userKeysChanged, { user_id, keys: [generateKeyPair().publicKey], revision: 1 });
  for (let count = 0; count < 12; count += 1) {
    await fixture.work();
    await fixture.pass(601);
  }
  await fixture.work();
  const rows = () =>
    fixture.gpuaas.query<{ wait_s: number | null; attempts: number }>(
      `SELECT extract(epoch FROM parked_until - now())::int AS wait_s, attempts FROM baremetal_instance WHERE instance_id = $1`,
      [instance.instance_id],
    );
  const [before] = await rows();
  expect(before?.wait_s).toBeGreaterThan(200);
  expect((await fixture.node(node.node_id)).unreachable_since).not.toBeNull();
  expect(await fixture.instance(team, instance)).toMatchObject({ status: 'Active', keys_stale: true });
  await rename('back');
  await fixture.pass(61);
  await fixture.work();
  expect((await fixture.instance(team, instance)).keys_stale).toBe(false);
  expect(await rows()).toEqual([{ wait_s: null, attempts: 0 }]);
});
