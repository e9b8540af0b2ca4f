import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { nodes, subscriptions, type Pool, type Workload } from '@atoll/contracts';
import { newId, Transactions } from '@atoll/database';
import { MachineWorker } from '@atoll/state-machine';
import { DataSource } from 'typeorm';
import { NodeDriver } from '../driver/node-driver.js';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import { GpuMachine } from '../gpus/gpu-machine.js';
import { GpuaasFixture, errorOf, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';
import { TeamGate } from '../teams/team-gate.js';
import { WorkloadMachine } from '../workloads/workload-machine.js';
import { SubscriptionMachine } from '../subscriptions/subscription-machine.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
let nodeName: string;
const machines = ['node', 'gpu', 'subscription', 'workload'];
beforeAll(async () => { fixture = await GpuaasFixture.start({ workers: { isIdle: true, stepMs: 3000 } }); });
afterAll(() => fixture.stop());
beforeEach(async () => { team = await fixture.team(); nodeName = `node-${newId()}`; });
const worker = (type: any) => new MachineWorker(fixture.get(type) as any, fixture.get(DataSource), fixture.get(Transactions), { service: 'gpuaas', stepMs: 3000 });
const sleep = (ms: number) => new Promise((r) => setTimeout(r, ms));
async function during(seconds: number) { for (let p = 0; p < seconds; p += 2) { await fixture.work(); await fixture.pass(2); } await fixture.work(); }
async function begun() { const r = fixture.get(DataSource).createQueryRunner(); await r.connect(); await r.startTransaction(); return r; }
void machines;

it('1 release deletes a lease of another GPU than it locked', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 }, { nodeName, count: 2 });
  const sub = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 3 });
  await fixture.settle();
  const w: Workload[] = [];
  for (let i = 0; i < 3; i += 1) { w.push(await fixture.start(team, sub)); await fixture.work(); }
  await fixture.stopWorkload(team, w[0]!); await fixture.stopWorkload(team, w[1]!); await fixture.work();
  await fixture.stopWorkload(team, w[2]!);
  console.log(await fixture.query('SELECT lease_id, gpu_id, workload_id FROM lease WHERE subscription_id=$1 ORDER BY 1', [sub.subscription_id]));
  const lock = await begun();
  await lock.query('SELECT FROM gpu WHERE gpu_id = ANY($1) FOR NO KEY UPDATE', [[pool.gpu_ids[0]]]);
  const resized = fixture.call(subscriptions.resize, { subscription_id: sub.subscription_id, vgpus: 2 }, team.member);
  await sleep(300);
  await worker(WorkloadMachine).settle();
  await lock.commitTransaction(); await lock.release();
  await resized;
  await fixture.settle();
  console.log('1', await fixture.query(`SELECT gpu_id, slots_used, (SELECT count(*) FROM lease WHERE lease.gpu_id = gpu.gpu_id) AS leases FROM gpu WHERE pool_id=$1 ORDER BY 1`, [pool.pool_id]));
}, 30000);

it('2 holdOpen does not see what was told while it waited', async () => {
  const lock = await begun();
  await lock.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 1))', [team.team_id]);
  await lock.query(`INSERT INTO team_closing VALUES ($1, clock_timestamp() + interval '60 s')`, [team.team_id]);
  const open = fixture.get(Transactions).run((m) => fixture.get(TeamGate).holdOpen(m, team.team_id)).then(() => 'open', (e: Error) => e.message);
  await sleep(300);
  await lock.commitTransaction(); await lock.release();
  console.log('2', await open);
}, 30000);

it('3 a lost GPU while its node is locked stays offline', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 }, { nodeName });
  const lock = await begun();
  await lock.query('SELECT FROM node WHERE node_id = $1 FOR SHARE', [pool.node_id]);
  await fixture.get(Transactions).run(async (m) => { await fixture.get(GpuMachine).send(m, pool.gpu_ids[0]!, 'GO_OFFLINE', { actor: 'x' }); });
  await lock.commitTransaction(); await lock.release();
  await during(600);
  console.log('3', (await fixture.node(pool.node_id)).status, await fixture.query('SELECT state FROM gpu WHERE gpu_id=$1', [pool.gpu_ids[0]]));
}, 60000);

it('4 stop while occupy is on its way', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 2, overcommit: 2, allow_fallback: true, temporal_replicas: 4 }, { nodeName });
  const sub = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 4 });
  await fixture.settle();
  await fixture.get(SimulatedFaults).inject(nodeName, 'occupy', 'slow', 1);
  const job = await fixture.start(team, sub);
  const first = worker(WorkloadMachine).settle();
  await sleep(300);
  await fixture.stopWorkload(team, job);
  await worker(WorkloadMachine).settle();
  console.log('4 state', await fixture.query('SELECT state FROM workload WHERE workload_id=$1', [job.workload_id]));
  await first;
  console.log('4', await fixture.query('SELECT holders FROM simulated_device JOIN gpu USING (uuid) WHERE gpu_id=$1', [pool.gpu_ids[0]]), await fixture.query('SELECT count(*) FROM lease WHERE gpu_id=$1', [pool.gpu_ids[0]]));
  const three: Workload[] = [];
  for (let i = 0; i < 3; i += 1) three.push(await fixture.start(team, sub));
  await fixture.settle();
  for (const one of three) await fixture.stopWorkload(team, one);
  await during(400);
  console.log('4 after 400 s', await fixture.gpu(pool));
}, 60000);

it('5 leaving while prepared', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 2, overcommit: 2, allow_fallback: true, temporal_replicas: 4 }, { nodeName });
  const sub = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 4 });
  await fixture.settle();
  const three: Workload[] = [];
  for (let i = 0; i < 3; i += 1) three.push(await fixture.start(team, sub));
  await fixture.settle();
  await fixture.get(Transactions).run(async (m) => { await fixture.get(GpuMachine).send(m, pool.gpu_ids[0]!, 'GO_OFFLINE', { actor: 'x' }); });
  const [, nodeWorker] = [0, (await import('../nodes/node-machine.js')).NodeMachine];
  for (let i = 0; i < 60; i += 1) { await worker(nodeWorker).settle(); const [g] = await fixture.query<{ state: string }>('SELECT state FROM gpu WHERE gpu_id=$1', [pool.gpu_ids[0]]); if (g?.state === 'preparing') break; await fixture.pass(2); }
  await worker(GpuMachine).settle();
  for (const one of three) await fixture.stopWorkload(team, one);
  await worker(WorkloadMachine).settle();
  await fixture.settle();
  await during(40);
  console.log('5', await fixture.query(`SELECT from_state, event, to_state, reason FROM machine_history WHERE machine='gpu' AND instance=$1 ORDER BY id`, [pool.gpu_ids[0]]), await fixture.query(`SELECT from_state, event, to_state, reason FROM machine_history WHERE machine='node' AND instance=$1 ORDER BY id`, [pool.node_id]));
}, 60000);

it('6 cordon is forgotten', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 }, { nodeName });
  await fixture.call(nodes.cordon, { node_id: pool.node_id });
  await fixture.work();
  await fixture.get(Transactions).run(async (m) => { await fixture.get(GpuMachine).send(m, pool.gpu_ids[0]!, 'GO_OFFLINE', { actor: 'x' }); });
  await during(60);
  console.log('6', (await fixture.node(pool.node_id)).status);
}, 60000);

it('7 a request that lands after the switch was given up', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 2, overcommit: 2, allow_fallback: true, temporal_replicas: 4 }, { nodeName });
  const sub = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 4 });
  await fixture.settle();
  const driver = fixture.get(NodeDriver) as any;
  const original = driver.request.bind(driver);
  const late: (() => Promise<void>)[] = [];
  driver.request = (d: any, l: any, signal: AbortSignal) => { late.push(() => original(d, l, new AbortController().signal)); return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))); };
  for (let i = 0; i < 3; i += 1) await fixture.start(team, sub);
  for (let i = 0; i < 40; i += 1) { await fixture.work(); const [g] = await fixture.query<{ state: string }>('SELECT state FROM gpu WHERE gpu_id=$1', [pool.gpu_ids[0]]); if (g?.state === 'spatial') break; await fixture.pass(10); }
  driver.request = original;
  await late[0]?.();
  await fixture.settle(); await during(60);
  await driver.observe({ nodeName, gpuaasId: pool.gpuaas_id, uuid: (await fixture.gpu(pool)).uuid }, new AbortController().signal);
  console.log('7', (await fixture.gpu(pool)).mode, await fixture.query('SELECT mode, simulated_device.generation, gpu.generation AS ours FROM simulated_device JOIN gpu USING (uuid) WHERE gpu_id=$1', [pool.gpu_ids[0]]));
}, 120000);

it('8 a workload goes to a GPU out of service', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 }, { nodeName, count: 2 });
  const sub = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 3 });
  await fixture.settle();
  await fixture.get(SimulatedFaults).inject(nodeName, 'init', 'fail', 1000);
  await fixture.get(Transactions).run(async (m) => { await fixture.get(GpuMachine).send(m, pool.gpu_ids[0]!, 'GO_OFFLINE', { actor: 'x' }); });
  await fixture.work();
  const job = await fixture.start(team, sub);
  await during(200);
  console.log('8', await fixture.query(`SELECT state, last_error->>'message' AS m FROM workload WHERE workload_id=$1`, [job.workload_id]));
}, 60000);

it('9 a failed subscription keeps its reason', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 2 }, { nodeName });
  const sub = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 1 });
  await fixture.settle();
  await fixture.start(team, sub); await fixture.work();
  await fixture.unsubscribe(team, sub, true);
  await fixture.pass(200);
  await worker(SubscriptionMachine).settle();
  const a = await fixture.query('SELECT state, last_error FROM subscription WHERE subscription_id=$1', [sub.subscription_id]);
  await fixture.work();
  console.log('9', a, await fixture.query('SELECT state, last_error FROM subscription WHERE subscription_id=$1', [sub.subscription_id]));
}, 60000);

it('10 reset against subscribe', async () => {
  const pool: Pool & Inventory = await fixture.pool({ mechanism: 'mps', replicas: 2 }, { nodeName });
  const lock = await begun();
  // A subscribe that has placed and not committed.
  const sub = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 1 });
  await fixture.settle(); void sub;
  await fixture.unsubscribe(team, sub); await fixture.settle();
  await lock.query('SELECT FROM gpu WHERE gpu_id = $1 FOR NO KEY UPDATE', [pool.gpu_ids[0]]);
  const again = await fixture.query<{ id: string }>('SELECT subscription_id AS id FROM subscription WHERE subscription_id=$1', [sub.subscription_id]);
  await lock.query(`INSERT INTO lease (gpu_id, subscription_id, profile, slot_start, slot_size) VALUES ($1, $2, 'mps-2', 0, 1)`, [pool.gpu_ids[0], again[0]!.id]);
  const reset = fixture.call(nodes.reset, { node_id: pool.node_id }).then((n) => n.status, (e: Error) => e.message);
  await sleep(300);
  await lock.commitTransaction(); await lock.release();
  console.log('10', await reset);
  await fixture.query('DELETE FROM lease WHERE gpu_id=$1', [pool.gpu_ids[0]]);
  const refused = await errorOf(fixture.call(subscriptions.list, { team_id: team.team_id, subscription_id: '999999', gpuaas_id: '99999' }, team.member)).catch((e: Error) => e.message);
  console.log('10 list', refused);
}, 60000);
