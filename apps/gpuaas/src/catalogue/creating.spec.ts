import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { pools, regions, nodes, type CreatePool } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { errorOf, GpuaasFixture, type Inventory } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let a100: Inventory;
let l4: Inventory;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  a100 = await fixture.inventory('A100-80GB', 2);
  l4 = await fixture.inventory('L4-24GB', 2);
});
afterAll(() => fixture.stop());

type Terms = Partial<Record<keyof CreatePool, unknown>>;

/** MIG of the A100, with other terms. */
const termsOf = (more: Terms = {}): CreatePool =>
  ({
    gpuaas_id: a100.gpuaas_id,
    pool_name: `pool-${newId()}`,
    gpu_ids: a100.gpu_ids,
    sharing_mode: 'Spatial',
    mechanism: 'mig',
    profiles: ['1g.10gb', '3g.40gb'],
    ...more,
  }) as CreatePool;
const create = (more: Terms = {}) => fixture.call(pools.create, termsOf(more));
const onL4 = (more: Terms = {}): Terms => ({
  gpuaas_id: l4.gpuaas_id,
  gpu_ids: l4.gpu_ids,
  mechanism: 'mps',
  profiles: undefined,
  replicas: 4,
  ...more,
});
const mps = (more: Terms = {}): Terms => ({ mechanism: 'mps', profiles: undefined, replicas: 4, ...more });
const temporal = (more: Terms = {}): Terms => mps({ sharing_mode: 'Temporal', mechanism: 'time_slicing', ...more });

/** All that making a pool writes. */
const written = () =>
  fixture.query(
    `SELECT (SELECT count(*) FROM pool) AS pools, (SELECT count(*) FROM gpu WHERE pool_id IS NOT NULL) AS gpus,
       (SELECT count(*) FROM machine_history) AS history, (SELECT count(*) FROM gpu WHERE state <> 'unpooled') AS moved`,
  );

describe('a pool that cannot be', () => {
  it.each<[string, Terms, keyof CreatePool, string]>([
    [
      'MIG in Temporal',
      { sharing_mode: 'Temporal' },
      'mechanism',
      'must be time_slicing where sharing_mode is Temporal.',
    ],
    [
      'MPS in Temporal',
      mps({ sharing_mode: 'Temporal' }),
      'mechanism',
      'must be time_slicing where sharing_mode is Temporal.',
    ],
    [
      'time slicing in Spatial',
      temporal({ sharing_mode: 'Spatial' }),
      'mechanism',
      'must be mig or mps where sharing_mode is Spatial.',
    ],
    [
      'MIG without profiles',
      { profiles: undefined },
      'profiles',
      'must name what a mig pool sells, profiles of A100-80GB: 1g.10gb',
    ],
    ['MIG with no profile', { profiles: [] }, 'profiles', ''],
    ['a profile of another board', { profiles: ['1g.10gb', '1g.5gb'] }, 'profiles', '7g.80gb; not 1g.5gb.'],
    ['a profile that no board has', { profiles: ['9g.90gb', 'x'] }, 'profiles', 'not 9g.90gb, x.'],
    ['a profile twice', { profiles: ['1g.10gb', '1g.10gb'] }, 'profiles', ''],
    ['a profile that is no text', { profiles: [1] }, 'profiles', ''],
    ['MIG with replicas', { replicas: 4 }, 'replicas', 'must be left out with mig'],
    ['MPS with profiles', mps({ profiles: ['1g.10gb'] }), 'profiles', 'is only allowed with mechanism mig'],
    ['MPS without replicas', mps({ replicas: undefined }), 'replicas', 'from 2 to 48'],
    ['time slicing without replicas', temporal({ replicas: undefined }), 'replicas', 'from 2 to 48'],
    ['one replica', mps({ replicas: 1 }), 'replicas', '2'],
    ['49 replicas', mps({ replicas: 49 }), 'replicas', '48'],
    ['half a replica', mps({ replicas: 2.5 }), 'replicas', ''],
    ['overcommit of 0', { overcommit: 0 }, 'overcommit', ''],
    ['overcommit of 1.5', { overcommit: 1.5 }, 'overcommit', ''],
    ['overcommit of 17', { overcommit: 17 }, 'overcommit', ''],
    [
      'a fallback from Temporal',
      temporal({ allow_fallback: true }),
      'allow_fallback',
      'there is nothing to fall back to',
    ],
    ['turns without a fallback', { temporal_replicas: 14 }, 'temporal_replicas', 'unless allow_fallback is true'],
    [
      'turns with a fallback that is not allowed',
      { allow_fallback: false, temporal_replicas: 14 },
      'temporal_replicas',
      'must be left out',
    ],
    ['turns of a Temporal pool', temporal({ temporal_replicas: 8 }), 'temporal_replicas', ''],
    [
      'no more turns than slices',
      { allow_fallback: true, temporal_replicas: 7 },
      'temporal_replicas',
      'more than the 7 slices',
    ],
    [
      'no more turns than shares',
      mps({ allow_fallback: true, temporal_replicas: 4 }),
      'temporal_replicas',
      'more than the 4 slices',
    ],
    ['49 turns', { allow_fallback: true, temporal_replicas: 49 }, 'temporal_replicas', '48'],
    [
      'a fallback from as many shares as there are turns',
      mps({ replicas: 48, allow_fallback: true }),
      'allow_fallback',
      'has 48 slices',
    ],
    ['a mode that there is not', { sharing_mode: 'Exclusive' }, 'sharing_mode', ''],
    ['a mechanism that there is not', { mechanism: 'vgpu' }, 'mechanism', ''],
    ['no GPU', { gpu_ids: [] }, 'gpu_ids', ''],
    ['no name', { pool_name: '' }, 'pool_name', ''],
    ['a name of 101 characters', { pool_name: 'x'.repeat(101) }, 'pool_name', ''],
    ['an id that is none', { gpuaas_id: 'eu' }, 'gpuaas_id', ''],
  ])('%s: the answer names the field, and nothing is written', async (_, more, field, sentence) => {
    const before = await written();
    const { code, message, details } = await errorOf(create(more));
    expect([code, details.errors?.map(({ path }) => path.split('.')[0])]).toEqual(['invalid_input', [field]]);
    expect([message, ...(details.errors ?? []).map((each) => each.message)].join(' ')).toContain(sentence);
    expect(await written()).toEqual(before);
  });

  it('MIG on a board without it: the answer says which mechanisms the board has', async () => {
    const before = await written();
    const { code, message, details } = await errorOf(
      create(onL4({ mechanism: 'mig', profiles: ['1g.10gb'], replicas: undefined })),
    );
    expect([code, details.errors?.[0]?.path]).toEqual(['invalid_input', 'mechanism']);
    expect(message).toBe('mechanism must not be mig, which L4-24GB does not support; use mps or time_slicing.');
    expect(await written()).toEqual(before);
  });

  it('GPUs of two boards: the answer names both', async () => {
    const { node_id, gpus } = await fixture.call(nodes.register, {
      gpuaas_id: a100.gpuaas_id,
      node_name: `node-${newId()}`,
      gpus: [
        { board: 'A30-24GB', count: 1 },
        { board: 'L40S-48GB', count: 1 },
      ],
    });
    const before = await written();
    const { code, message, details } = await errorOf(create(mps({ gpu_ids: gpus.map(({ gpu_id }) => gpu_id) })));
    expect([code, details.errors?.[0]?.path]).toEqual(['invalid_input', 'gpu_ids']);
    expect(message).toBe('gpu_ids must be GPUs of one board; these are A30-24GB and L40S-48GB.');
    expect([await written(), (await fixture.node(node_id)).gpus.every(({ pool_id }) => pool_id === null)]).toEqual([
      before,
      true,
    ]);
  });

  it('a GPU of another GPU service, or one that there is not: the answer names it by its place in the list', async () => {
    const before = await written();
    for (const stranger of [l4.gpu_ids[0], '999999999']) {
      const { code, details, message } = await errorOf(create({ gpu_ids: [a100.gpu_ids[0], stranger] }));
      expect([code, details.errors?.[0]?.path]).toEqual(['invalid_input', 'gpu_ids.1']);
      expect(message).toBe('gpu_ids.1 must be a GPU of a node of this GPU service.');
    }
    expect(await written()).toEqual(before);
  });

  it('a GPU twice', async () => {
    const { code, details } = await errorOf(create({ gpu_ids: [a100.gpu_ids[0], a100.gpu_ids[0]] }));
    expect([code, details.errors?.[0]?.path]).toEqual(['invalid_input', 'gpu_ids']);
  });

  it('in a GPU service that there is not', async () => {
    expect((await errorOf(create({ gpuaas_id: '999999999' }))).code).toBe('not_found');
  });

  it('by anybody but the operator', async () => {
    const { member } = await fixture.team('team_owner');
    expect((await errorOf(fixture.call(pools.create, termsOf(), member))).code).toBe('forbidden');
    expect((await errorOf(fixture.call(pools.list, {}, member))).code).toBe('forbidden');
  });
});

describe('a pool', () => {
  it('is as it was asked for, with its defaults, its profiles from small to large', async () => {
    const { gpuaas_id, gpu_ids } = await fixture.inventory('A100-80GB', 2);
    const pool_name = `pool-${newId()}`;
    const pool = await create({ gpuaas_id, gpu_ids, pool_name, profiles: ['7g.80gb', '1g.20gb', '1g.10gb'] });
    expect(pool).toEqual({
      pool_id: expect.stringMatching(/^\d+$/),
      gpuaas_id,
      region_id: expect.stringMatching(/^\d+$/),
      pool_name,
      board: 'A100-80GB',
      gpu_ids,
      sharing_mode: 'Spatial',
      mechanism: 'mig',
      profiles: ['1g.10gb', '1g.20gb', '7g.80gb'],
      replicas: null,
      overcommit: 1,
      allow_fallback: false,
      temporal_replicas: null,
      created_at: expect.stringMatching(/\.\d{3}Z$/),
    });
    expect(await fixture.call(pools.list, { gpuaas_id })).toEqual({
      data: [pool],
      pagination: { page: 1, limit: 10, total: 1 },
    });
  });

  it.each<[string, Terms, object]>([
    ['of MPS shares', mps({ replicas: 48 }), { profiles: ['mps-48'], replicas: 48 }],
    ['of turns', temporal({ replicas: 2 }), { sharing_mode: 'Temporal', profiles: ['ts-2'], replicas: 2 }],
    ['whose mode is spelt in lower case', { sharing_mode: 'spatial' }, { sharing_mode: 'Spatial' }],
    ['with a fallback has twice as many turns as slices', { allow_fallback: true }, { temporal_replicas: 14 }],
    ['with a fallback has 48 turns at most', mps({ replicas: 30, allow_fallback: true }), { temporal_replicas: 48 }],
    ['has the turns it was given', { allow_fallback: true, temporal_replicas: 8 }, { temporal_replicas: 8 }],
    [
      'counts slices by its smallest profile',
      { profiles: ['3g.40gb'], allow_fallback: true },
      { temporal_replicas: 4 },
    ],
  ])('%s', async (_, more, expected) => {
    const { gpuaas_id, gpu_ids } = await fixture.inventory();
    expect(await create({ gpuaas_id, gpu_ids, ...more })).toMatchObject(expected);
  });

  it('has its name alone in its GPU service; in another there may be one of that name', async () => {
    const [here, there] = [await fixture.inventory('A100-80GB', 2), await fixture.inventory()];
    const pool_name = `pool-${newId()}`;
    await create({ gpuaas_id: here.gpuaas_id, pool_name, gpu_ids: here.gpu_ids.slice(0, 1) });
    const again = () => create({ gpuaas_id: here.gpuaas_id, pool_name, gpu_ids: here.gpu_ids.slice(1) });
    const { code, message } = await errorOf(again());
    expect([code, message]).toEqual(['conflict', 'The GPU service already has a pool with this name.']);
    expect((await fixture.gpu(here, 1)).pool_id).toBeNull();
    expect((await create({ gpuaas_id: there.gpuaas_id, pool_name, gpu_ids: there.gpu_ids })).pool_name).toBe(pool_name);
  });

  it('has its GPUs alone: one that is in a pool is a conflict that names both, and none of the others is taken', async () => {
    const { gpuaas_id, gpu_ids, node_id } = await fixture.inventory('A100-80GB', 2);
    const pool = await create({ gpuaas_id, gpu_ids: gpu_ids.slice(1) });
    const { code, message } = await errorOf(create({ gpuaas_id, gpu_ids }));
    expect([code, message]).toEqual(['conflict', `GPU ${gpu_ids[1]} is already in pool ${pool.pool_id}.`]);
    expect((await fixture.gpu({ node_id })).pool_id).toBeNull();
  });

  it('of a GPU that many want at once is one pool', async () => {
    const { gpuaas_id, gpu_ids } = await fixture.inventory('A100-80GB', 3);
    const [one, two, three] = gpu_ids as [string, string, string];
    const asked = [
      [one, two],
      [two, three],
      [three, one],
      [two, one],
      [three, two],
    ];
    const answers = await Promise.allSettled(asked.map((ids) => create({ gpuaas_id, gpu_ids: ids })));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const answer of answers)
      if (answer.status === 'rejected') expect(answer.reason).toMatchObject({ code: 'conflict' });
  });

  it('is made once by one Idempotency-Key', async () => {
    const { gpuaas_id, gpu_ids } = await fixture.inventory();
    const asked = termsOf({ gpuaas_id, gpu_ids });
    const again = () =>
      fixture.call(
        pools.create,
        asked,
        { platformAdmin: true, userId: newId() },
        { key: asked.pool_name, fingerprint: 'body' },
      );
    expect(await again()).toEqual(await again());
    expect((await fixture.call(pools.list, { gpuaas_id })).pagination.total).toBe(1);
  });

  it('on a node that is not ready yet sells nothing until it is, and then all by itself', async () => {
    const team = await fixture.team();
    const { region_id } = await fixture.call(regions.create, { region_name: `region-${newId()}` });
    const { gpuaas_id } = await fixture.call(regions.createGpuaas, { region_id, name: 'a' });
    const { node_id, gpus } = await fixture.call(nodes.register, {
      gpuaas_id,
      node_name: `node-${newId()}`,
      gpus: [{ board: 'A100-80GB', count: 1 }],
    });
    const { pool_id } = await create({ gpuaas_id, gpu_ids: gpus.map(({ gpu_id }) => gpu_id) });
    await fixture.settle();
    expect(await fixture.gpu({ node_id })).toMatchObject({ pool_id, mode: 'Spatial', slices: [] });
    const { code, message } = await errorOf(fixture.subscribe(team, { pool_id }));
    expect([code, message]).toEqual(['insufficient_capacity', expect.stringContaining('Available: nothing.')]);
    await fixture.call(nodes.initialise, { node_id });
    await fixture.settle();
    const held = await fixture.subscribe(team, { pool_id, vgpus: 7 });
    await fixture.settle();
    expect(await fixture.subscription(team, held)).toMatchObject({ status: 'active', vgpus_allocated: 7 });
  });
});

describe('the list of pools', () => {
  it('has each once, in the order they were made, in pages counted from 1, of one GPU service or of all', async () => {
    const inventory = await fixture.inventory('A100-80GB', 3);
    const made: string[] = [];
    for (const id of inventory.gpu_ids) made.push((await fixture.poolOn(inventory, [id])).pool_id);
    const { gpuaas_id } = inventory;
    const page = async (asked: object) => {
      const { data, pagination } = await fixture.call(pools.list, { gpuaas_id, ...asked });
      return [data.map(({ pool_id }) => pool_id), pagination.total];
    };
    expect(await page({})).toEqual([made, 3]);
    expect(await page({ limit: 2, page: 2 })).toEqual([made.slice(2), 3]);
    expect(await page({ page: 7 })).toEqual([[], 3]);
    expect((await fixture.call(pools.list, {})).pagination.total).toBeGreaterThan(3);
    expect((await errorOf(fixture.call(pools.list, { gpuaas_id: '999999999' }))).code).toBe('not_found');
  });
});
