import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { nodes, regions, type NodeStatus } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { allStatementsDuring } from '@atoll/testing';
import { errorOf, GpuaasFixture } from '../gpuaas-fixture.js';
import { NodesUnderTest, type NodeCommand } from './node-fixture.js';
import { NodeSteps } from './node-steps.js';

let fixture: GpuaasFixture;
let desk: NodesUnderTest;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  desk = await NodesUnderTest.of(fixture);
});
afterAll(() => fixture.stop());

describe('a node', () => {
  it('is registered with its GPUs, in no pool, in the order they were named', async () => {
    const node_name = `node-${newId()}`;
    const node = await desk.register(node_name, [
      { board: 'A30-24GB', count: 2 },
      { board: 'L4-24GB', count: 1 },
    ]);
    const gpu = {
      pool_id: null,
      mode: null,
      origin: 'configured',
      transition: null,
      reason: null,
      slices: [],
      tenants: [],
    };
    const numbered = { gpu_id: expect.stringMatching(/^\d+$/), uuid: expect.stringMatching(/^GPU-[0-9a-f-]{36}$/) };
    expect(node).toEqual({
      node_id: expect.stringMatching(/^\d+$/),
      gpuaas_id: desk.gpuaasId,
      node_name,
      status: 'registered',
      reason: null,
      retry_at: null,
      gpus: ['A30-24GB', 'A30-24GB', 'L4-24GB'].map((board) => ({ ...gpu, ...numbered, board })),
      created_at: expect.stringMatching(/\.\d{3}Z$/),
    });
    expect(new Set(node.gpus.map(({ uuid }) => uuid)).size).toBe(3);
    expect(await fixture.node(node.node_id)).toEqual(node);
  });

  it('of 16 GPUs is initialised by as many statements as one of a single GPU', async () => {
    const steps = fixture.get(NodeSteps);
    const statementsFor = async (count: number) => {
      const node = await desk.register(`node-${newId()}`, [{ board: 'A100-80GB', count }]);
      await desk.command('initialise', node);
      const [raw = {}] = await fixture.query<object>('SELECT * FROM node WHERE node_id = $1', [node.node_id]);
      const sent = await allStatementsDuring(async () => {
        expect(await steps.step(steps.rowOf(raw), { signal: AbortSignal.timeout(60_000) })).toEqual({
          event: 'SUCCEEDED',
        });
      });
      return sent.filter(({ text }) => /\b(gpu|simulated_\w+)\b/.test(text)).length;
    };
    expect(await statementsFor(16)).toBe(await statementsFor(1));
  });

  it.each<[string, object, string]>([
    ['a board that there is not', { gpus: [{ board: 'A100', count: 1 }] }, 'gpus.0.board'],
    [
      'a board that there is not, beside one that there is',
      {
        gpus: [
          { board: 'L4-24GB', count: 1 },
          { board: 'x', count: 1 },
        ],
      },
      'gpus.1.board',
    ],
    ['no GPUs', { gpus: [] }, 'gpus'],
    ['none of a board', { gpus: [{ board: 'L4-24GB', count: 0 }] }, 'gpus.0.count'],
    ['seventeen of a board', { gpus: [{ board: 'L4-24GB', count: 17 }] }, 'gpus.0.count'],
    ['half a GPU', { gpus: [{ board: 'L4-24GB', count: 1.5 }] }, 'gpus.0.count'],
    ['a name that no host has', { node_name: 'GPU 01' }, 'node_name'],
    ['a GPU service whose id is none', { gpuaas_id: 'eu' }, 'gpuaas_id'],
  ])('is not registered with %s, and nothing is written', async (_, more, path) => {
    const count = () =>
      fixture.query('SELECT (SELECT count(*) FROM node) AS nodes, (SELECT count(*) FROM gpu) AS gpus');
    const before = await count();
    const asked = {
      gpuaas_id: desk.gpuaasId,
      node_name: `node-${newId()}`,
      gpus: [{ board: 'L4-24GB', count: 1 }],
      ...more,
    };
    const { code, details } = await errorOf(fixture.call(nodes.register, asked));
    expect([code, details.errors?.[0]?.path]).toEqual(['invalid_input', path]);
    expect(await count()).toEqual(before);
  });

  it('has its name alone in its GPU service', async () => {
    const { node_name } = await desk.register();
    const { code, message } = await errorOf(desk.register(node_name));
    expect([code, message]).toEqual(['conflict', 'The GPU service already has a node with this name.']);
    const answers = await Promise.allSettled(Array.from({ length: 5 }, () => desk.register('only-once')));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('is not registered where there is no GPU service, nor found where there is no node', async () => {
    const asked = { gpuaas_id: '999999999', node_name: 'nowhere', gpus: [{ board: 'L4-24GB', count: 1 }] };
    expect((await errorOf(fixture.call(nodes.register, asked))).code).toBe('not_found');
    expect((await errorOf(fixture.node('999999999'))).code).toBe('not_found');
    for (const name of ['initialise', 'reset', 'cordon', 'uncordon'] as const) {
      expect((await errorOf(desk.command(name, { node_id: '999999999' }))).code).toBe('not_found');
    }
  });

  it('is the operator’s alone', async () => {
    const [{ member }, node] = [await fixture.team('team_owner'), await desk.register()];
    for (const name of ['initialise', 'reset', 'cordon', 'uncordon'] as const) {
      expect((await errorOf(desk.command(name, node, member))).code).toBe('forbidden');
    }
    expect((await errorOf(fixture.call(nodes.get, { node_id: node.node_id }, member))).code).toBe('forbidden');
    expect((await errorOf(fixture.call(nodes.list, {}, member))).code).toBe('forbidden');
    const asked = { gpuaas_id: desk.gpuaasId, node_name: 'theirs', gpus: [{ board: 'L4-24GB', count: 1 }] };
    expect((await errorOf(fixture.call(nodes.register, asked, member))).code).toBe('forbidden');
  });

  it('is listed with the others of its GPU service, in the order they were made, in pages counted from 1', async () => {
    const { region_id } = await fixture.call(regions.create, { region_name: 'Pokhara' });
    const other = (await fixture.call(regions.createGpuaas, { region_id, name: 'b' })).gpuaas_id;
    const made: string[] = [];
    for (const node_name of ['c', 'a', 'b']) {
      made.push(
        (await fixture.call(nodes.register, { gpuaas_id: other, node_name, gpus: [{ board: 'L4-24GB', count: 1 }] }))
          .node_id,
      );
    }
    const page = async (asked: object) => {
      const { data, pagination } = await fixture.call(nodes.list, { gpuaas_id: other, ...asked });
      return [data.map(({ node_id }) => node_id), pagination];
    };
    expect(await page({})).toEqual([made, { page: 1, limit: 10, total: 3 }]);
    expect(await page({ page: 2, limit: 2 })).toEqual([made.slice(2), { page: 2, limit: 2, total: 3 }]);
    expect(await page({ page: 5 })).toEqual([[], { page: 5, limit: 10, total: 3 }]);
    expect((await fixture.call(nodes.list, {})).pagination.total).toBeGreaterThan(3);
    expect((await errorOf(page({ gpuaas_id: '999999999' }))).code).toBe('not_found');
  });
});

describe('the commands to a node', () => {
  it.each<[NodeCommand, NodeStatus, NodeStatus | 'conflict']>([
    ['initialise', 'registered', 'initialising'],
    ['initialise', 'initialising', 'initialising'],
    ['initialise', 'ready', 'conflict'],
    ['initialise', 'init_failed', 'initialising'],
    ['initialise', 'cordoned', 'conflict'],
    ['reset', 'registered', 'initialising'],
    ['reset', 'initialising', 'conflict'],
    ['reset', 'ready', 'initialising'],
    ['reset', 'init_failed', 'initialising'],
    ['reset', 'cordoned', 'initialising'],
    ['cordon', 'registered', 'conflict'],
    ['cordon', 'initialising', 'conflict'],
    ['cordon', 'ready', 'cordoned'],
    ['cordon', 'init_failed', 'cordoned'],
    ['cordon', 'cordoned', 'cordoned'],
    ['uncordon', 'registered', 'conflict'],
    ['uncordon', 'initialising', 'conflict'],
    ['uncordon', 'ready', 'ready'],
    ['uncordon', 'init_failed', 'conflict'],
    ['uncordon', 'cordoned', 'ready'],
  ])('%s, where it is %s: %s', async (name, status, expected) => {
    const node = await desk.nodeThatIs(status);
    const before = await desk.historyOf(node);
    if (expected === 'conflict') {
      const { code, message } = await errorOf(desk.command(name, node));
      expect([code, message]).toEqual([
        'conflict',
        expect.stringContaining(`The node is ${status}; ${name} needs a node that is `),
      ]);
      expect(await fixture.node(node.node_id)).toEqual(node);
    } else expect((await desk.command(name, node)).status).toBe(expected);
    expect((await desk.historyOf(node)).length - before.length).toBe(
      expected === 'conflict' || expected === status ? 0 : 1,
    );
  });

  it('of many at once are obeyed once', async () => {
    const node = await desk.register();
    await Promise.all(Array.from({ length: 8 }, () => desk.command('initialise', node)));
    await fixture.work();
    await Promise.all(Array.from({ length: 8 }, () => desk.command('cordon', node)));
    expect((await desk.historyOf(node)).map(({ to_state }) => to_state)).toEqual([
      'registered',
      'initialising',
      'ready',
      'cordoned',
    ]);
  });

  it('are told in its history: who, why, when, and by which request; the platform’s own moves too', async () => {
    const node = await desk.register();
    const userId = newId();
    await desk.command('initialise', node, { platformAdmin: true, userId });
    await fixture.work();
    const id = expect.stringMatching(/^[0-9a-f-]{36}$/);
    const [began, asked, done] = await desk.historyOf(node);
    expect(began).toEqual({
      from_state: null,
      to_state: 'registered',
      event: null,
      actor: expect.stringMatching(/^user:/),
      reason: null,
      request_id: id,
    });
    expect(asked).toEqual({
      from_state: 'registered',
      to_state: 'initialising',
      event: 'INITIALISE',
      actor: `user:${userId}`,
      reason: 'initialise',
      request_id: id,
    });
    expect(done).toEqual({
      from_state: 'initialising',
      to_state: 'ready',
      event: 'SUCCEEDED',
      actor: 'system:gpuaas',
      reason: null,
      request_id: asked?.request_id,
    });
  });
});
