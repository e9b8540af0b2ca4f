import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { subscriptions, workloads, type CreatePool, type GpuNode, type Pool } from '@atoll/contracts/gpuaas';
import { inBackground, QueueTime, Statements } from '@atoll/database';
import { StepFailed } from '@atoll/state-machine';
import { Logger } from '@nestjs/common';
import { NodeDriver } from '../driver/node-driver.js';
import { SimulatedFaults, type FaultKind, type SimulatedOperation } from '../driver/simulated-faults.js';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';
import type { PlacedOperation } from '../model/node-trouble.entity.js';
import { NodesUnderTest } from '../nodes/node-fixture.js';
import { NodeTroubles } from '../sharing/node-troubles.js';

/** Steps time out soon, so that a node that hangs is found to. */
let fixture: GpuaasFixture;
let under: NodesUnderTest;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start({ workers: { isIdle: true, stepMs: 2_000 } });
  under = await NodesUnderTest.of(fixture);
});
beforeEach(async () => {
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const mps = { mechanism: 'mps', replicas: 4 } as const;

type Held = { subscription_id: string };

/** A pool over two nodes. The first of them would be filled first. */
async function twoNodes(terms: Partial<CreatePool> = mps): Promise<{ pool: Pool; sick: GpuNode; well: GpuNode }> {
  const { pool, nodes } = await under.poolOver(2, terms);
  const [sick, well] = nodes as [GpuNode, GpuNode];
  return { pool, sick, well };
}
const inject = ({ node_name }: GpuNode, operation: SimulatedOperation, kind: FaultKind, times = 1_000) =>
  fixture.get(SimulatedFaults).inject(node_name, operation, kind, times);
const mend = ({ node_name }: GpuNode) => fixture.get(SimulatedFaults).mend(node_name);

async function subscribed({ pool_id }: Pool, vgpus = 1): Promise<Held & { status: string }> {
  const held = await fixture.subscribe(team, { pool_id, vgpus });
  await fixture.settle();
  return fixture.subscription(team, held);
}
async function statusesOf(count: number, next: () => Promise<{ status: string }>): Promise<string[]> {
  const statuses: string[] = [];
  for (let at = 0; at < count; at += 1) statuses.push((await next()).status);
  return statuses;
}
async function started(held: Held): Promise<{ status: string }> {
  const { workload_id } = await fixture.start(team, held);
  await fixture.settle();
  const { data } = await fixture.call(
    workloads.list,
    { team_id: team.team_id, include_ended: 'true', limit: 100 },
    team.member,
  );
  return data.find((each) => each.workload_id === workload_id) ?? { status: 'unknown' };
}
const reasonOf = async ({ node_id }: GpuNode) => (await fixture.node(node_id)).reason;
async function failed({ node_id }: GpuNode, operation: PlacedOperation): Promise<void> {
  const asking = { operation, lane: node_id, isTroubled: false, context: { signal: AbortSignal.any([]) } };
  const call = () => Promise.reject(new StepFailed('node_failed', `The node failed: ${operation}.`));
  await expect(fixture.get(NodeTroubles).ask(asking, call)).rejects.toThrow();
}
/** A minute passes while the node is asked, then the time limit of the step is over. */
async function timedOut({ node_id }: GpuNode, { isClaimLost = false, isQueued = false }): Promise<void> {
  const queued = new QueueTime();
  const timeout = new AbortController();
  let { signal } = timeout;
  const context = {
    get signal() {
      return signal;
    },
  };
  const call = () => {
    const end = isQueued ? queued.begin() : () => undefined;
    jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_000);
    end();
    timeout.abort(new DOMException('The time limit is over.', 'TimeoutError'));
    if (isClaimLost) signal = AbortSignal.abort();
    return new Promise(() => undefined);
  };
  const asking = { operation: 'confirm', lane: node_id, isTroubled: false, context } as const;
  const asked = inBackground(() => fixture.get(NodeTroubles).ask(asking, call), queued);
  await expect(asked).rejects.toThrow('The time limit is over.');
  jest.restoreAllMocks();
}
/** How many vGPUs of each node are held. */
const heldOn = async (...all: GpuNode[]) =>
  Promise.all(all.map(async (node) => (await fixture.gpu(node)).slices.length));

describe('a node that fails at what it is asked to do for those who are placed there', () => {
  it.each(['fail', 'refuse'] as const)(
    'takes one subscription with it, and the next go to other nodes: %s',
    async (kind) => {
      const { pool, sick, well } = await twoNodes();
      await inject(sick, 'confirm', kind);
      expect(await statusesOf(4, () => subscribed(pool))).toEqual(['failed', 'active', 'active', 'active']);
      expect(await heldOn(sick, well)).toEqual([0, 3]);
    },
  );

  it('takes one workload of an entitlement with it', async () => {
    const { pool, sick } = await twoNodes({ ...mps, overcommit: 2 });
    const held = await subscribed(pool, 6);
    await inject(sick, 'occupy', 'fail');
    expect(await statusesOf(3, () => started(held))).toEqual(['failed', 'running', 'running']);
  });

  it('takes one workload of a subscription that holds slices of other nodes too with it', async () => {
    const { pool, sick } = await twoNodes();
    const held = await subscribed(pool, 8);
    await inject(sick, 'occupy', 'fail');
    expect(await statusesOf(3, () => started(held))).toEqual(['failed', 'running', 'running']);
  });

  it('takes one resize with it', async () => {
    const { pool, sick, well } = await twoNodes();
    const { subscription_id } = await subscribed(pool);
    await inject(sick, 'confirm', 'fail');
    const grown = async () => {
      await fixture.call(subscriptions.resize, { subscription_id, vgpus: 2 }, team.member);
      await fixture.settle();
      return { status: (await fixture.subscription(team, { subscription_id })).resize?.status ?? 'done' };
    };
    expect(await statusesOf(2, grown)).toEqual(['failed', 'done']);
    expect(await heldOn(sick, well)).toEqual([1, 1]);
  });

  it('costs those who come after it was found to hang nothing', async () => {
    const { pool, sick } = await twoNodes();
    await inject(sick, 'confirm', 'hang');
    const first = await fixture.subscribe(team, { pool_id: pool.pool_id });
    await fixture.until(async () => (await reasonOf(sick)) !== null, 60);
    const second = await fixture.subscribe(team, { pool_id: pool.pool_id });
    await fixture.until(async () => (await fixture.subscription(team, second)).status === 'active', 2);
    expect((await fixture.subscription(team, first)).status).toBe('subscribing');
    await mend(sick);
  });

  it('is ready, and says when it failed, why and until when it is avoided, until it works again', async () => {
    const { pool, sick } = await twoNodes();
    await inject(sick, 'confirm', 'fail', 1);
    await subscribed(pool);
    expect(await fixture.node(sick.node_id)).toMatchObject({
      status: 'ready',
      reason: expect.stringMatching(
        /^The node failed: confirm\. It failed at \S+Z; other nodes are preferred until \S+Z\.$/,
      ),
    });
    expect((await subscribed(pool, 8)).status).toBe('active');
    expect(await reasonOf(sick)).toBeNull();
  });

  it('shows nothing any more when it is not avoided any longer', async () => {
    const { pool, sick } = await twoNodes();
    await inject(sick, 'confirm', 'fail', 1);
    await subscribed(pool);
    await fixture.pass(29);
    expect(await reasonOf(sick)).not.toBeNull();
    await fixture.pass(2);
    expect(await reasonOf(sick)).toBeNull();
  });

  it('that fails at two kinds of calls shows the failure for which it is avoided the longest', async () => {
    const { sick } = await twoNodes();
    await failed(sick, 'confirm');
    await fixture.pass(31);
    // The second time in a row: for a minute.
    await failed(sick, 'confirm');
    await failed(sick, 'occupy');
    expect(await reasonOf(sick)).toMatch(/^The node failed: confirm\. /);
  });

  it('that fails at one kind of call only is not looked for trouble of it when it does another well', async () => {
    const { pool, nodes } = await under.poolOver(1, mps);
    const [only] = nodes as [GpuNode];
    const held = await subscribed(pool, 4);
    await failed(only, 'confirm');
    const query = jest.spyOn(Statements.prototype, 'query');
    const deletions = () => query.mock.calls.filter(([text]) => text.includes('DELETE FROM node_trouble')).length;
    expect(await started(held)).toMatchObject({ status: 'running' });
    expect(deletions()).toBe(0);
    await failed(only, 'occupy');
    expect(await started(held)).toMatchObject({ status: 'running' });
    expect(deletions()).toBe(1);
    query.mockRestore();
    expect(await reasonOf(only)).toMatch(/^The node failed: confirm\. /);
  });

  it('comes after a turn of another node', async () => {
    const { pool, sick, well } = await twoNodes({ ...mps, allow_fallback: true, temporal_replicas: 8 });
    await under.command('cordon', sick);
    await subscribed(pool, 5);
    await under.command('uncordon', sick);
    await fixture.settle();
    await inject(sick, 'confirm', 'fail');
    expect(await statusesOf(2, () => subscribed(pool))).toEqual(['failed', 'active']);
    expect((await fixture.gpu(well)).tenants).toHaveLength(6);
  });

  it('is logged once, however often it is tried, and once more when it works again', async () => {
    const { pool, sick } = await twoNodes();
    const lines: unknown[] = [];
    for (const level of ['log', 'warn'] as const)
      jest.spyOn(Logger.prototype, level).mockImplementation((line) => void lines.push(line));
    await inject(sick, 'confirm', 'refuse', 5);
    await subscribed(pool);
    await subscribed(pool, 8);
    jest.restoreAllMocks();
    expect(lines).toEqual([
      expect.stringMatching(
        `^Node ${sick.node_name} failed \\(confirm\\); other nodes are preferred until .*Z: The node refused: confirm.$`,
      ),
      `Node ${sick.node_name} works again (confirm).`,
    ]);
  });

  it('is used all the same where it is the only one', async () => {
    const { pool, nodes } = await under.poolOver(1, mps);
    const [only] = nodes as [GpuNode];
    await inject(only, 'confirm', 'fail', 2);
    expect(await statusesOf(3, () => subscribed(pool))).toEqual(['failed', 'failed', 'active']);
  });

  it('is tried again after half a minute, and avoided for twice as long when it fails again', async () => {
    const { pool, sick } = await twoNodes();
    await inject(sick, 'confirm', 'fail');
    // All GPUs are empty at each look, so that the first is preferred.
    const next = async () => {
      const held = await subscribed(pool);
      await fixture.unsubscribe(team, held);
      await fixture.settle();
      return held;
    };
    expect(await statusesOf(2, next)).toEqual(['failed', 'active']);
    await fixture.pass(31);
    expect(await statusesOf(2, next)).toEqual(['failed', 'active']);
    await fixture.pass(31);
    expect(await statusesOf(1, next)).toEqual(['active']);
    await fixture.pass(31);
    expect(await statusesOf(2, next)).toEqual(['failed', 'active']);
  });

  it('is in its turn again when it was initialised again', async () => {
    const { pool, sick, well } = await twoNodes();
    await inject(sick, 'confirm', 'fail', 1);
    await subscribed(pool);
    await under.command('reset', sick);
    await fixture.settle();
    expect(await reasonOf(sick)).toBeNull();
    await subscribed(pool);
    expect(await heldOn(sick, well)).toEqual([1, 0]);
  });
});

describe('what is not the doing of a node', () => {
  it.each([
    ['an error of the platform', () => Promise.reject(new Error('a bug')), AbortSignal.any([])],
    ['a call that was withdrawn', () => new Promise(() => undefined), AbortSignal.abort(new Error('withdrawn'))],
    ['a call that had no time left', () => new Promise(() => undefined), AbortSignal.timeout(1)],
  ])('is not remembered of it: %s', async (_, call, signal) => {
    const { sick } = await twoNodes();
    const asking = { operation: 'confirm', lane: sick.node_id, isTroubled: false, context: { signal } } as const;
    await expect(fixture.get(NodeTroubles).ask(asking, call)).rejects.toThrow();
    expect(await reasonOf(sick)).toBeNull();
  });

  it.each([
    ['while the process stood still, so that its claim was lost', { isClaimLost: true }],
    ['while the call waited for a connection to the database', { isQueued: true }],
  ])('is not remembered of it: a time limit that passed %s', async (_, meanwhile) => {
    const { sick, well } = await twoNodes();
    for (const node of [well, sick]) await timedOut(node, node === sick ? meanwhile : {});
    expect(await reasonOf(well)).toMatch(/^There was no response in time\. /);
    expect(await reasonOf(sick)).toBeNull();
  });

  it('is not remembered of it: a subscription that ends while its node is asked', async () => {
    const { pool, sick } = await twoNodes();
    const driver = fixture.get(NodeDriver);
    const held = await fixture.subscribe(team, { pool_id: pool.pool_id });
    jest.spyOn(driver, 'confirm').mockImplementationOnce(async (_slices, signal) => {
      await fixture.unsubscribe(team, held);
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
    });
    await fixture.settle();
    expect((await fixture.subscription(team, held)).status).toBe('unsubscribed');
    expect(await reasonOf(sick)).toBeNull();
  });
});
