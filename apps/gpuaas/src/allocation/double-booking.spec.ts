import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { runs, untilLockWaits } from '@atoll/testing';
import fc from 'fast-check';
import { DataSource } from 'typeorm';
import { GpuaasFixture } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
let gpuIds: [string, string];
let subscriptionId: string;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  const team = await fixture.team();
  const { gpu_ids, pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 48 }, { count: 2 });
  gpuIds = gpu_ids as [string, string];
  subscriptionId = (await fixture.subscribe(team, { pool_id })).subscription_id;
});
afterAll(() => fixture.stop());

/** A lease as somebody might write it by hand, past all code. */
interface Lease {
  gpu: 0 | 1;
  slotStart: number | null;
  slotSize: number;
  turn: number | null;
}

const insertion = `INSERT INTO lease (gpu_id, subscription_id, profile, slot_start, slot_size, turn) VALUES ($1, $2, 'mps-48', $3, $4, $5)`;
const valuesOf = ({ gpu, slotStart, slotSize, turn }: Lease) => [
  gpuIds[gpu],
  subscriptionId,
  slotStart,
  slotSize,
  turn,
];
const write = (lease: Lease) => fixture.query(insertion, valuesOf(lease));
const clear = () => fixture.query('DELETE FROM lease');
const isWritten = (writing: Promise<unknown>) =>
  writing.then(
    () => true,
    () => false,
  );

/** The slots and turns that a lease holds, each under a name of its own. */
const heldBy = ({ gpu, slotStart, slotSize, turn }: Lease) => [
  ...(slotStart === null ? [] : Array.from({ length: slotSize }, (_, at) => `${gpu} slot ${slotStart + at}`)),
  ...(turn === null ? [] : [`${gpu} turn ${turn}`]),
];

const lease: fc.Arbitrary<Lease> = fc
  .record({
    gpu: fc.constantFrom(0 as const, 1 as const),
    // Small numbers, so that they meet; and the last ones, beside which the next GPU begins.
    slotStart: fc.oneof(fc.integer({ min: 0, max: 11 }), fc.integer({ min: 40, max: 47 }), fc.constant(null)),
    slotSize: fc.integer({ min: 1, max: 8 }),
    turn: fc.oneof(fc.integer({ min: 0, max: 7 }), fc.constant(47), fc.constant(null)),
  })
  .filter(({ slotStart, turn }) => slotStart !== null || turn !== null);

describe('leases written by hand', () => {
  it('law: are taken by PostgreSQL if and only if nobody holds a slot or a turn of theirs', async () => {
    await fc.assert(
      fc
        .asyncProperty(fc.array(lease, { minLength: 2, maxLength: 12 }), async (leases) => {
          const held = new Set<string>();
          for (const each of leases) {
            const parts = heldBy(each);
            const isFree = parts.every((part) => !held.has(part));
            expect([each, await isWritten(write(each))]).toEqual([each, isFree]);
            if (isFree) parts.forEach((part) => held.add(part));
          }
        })
        .beforeEach(clear),
      runs(60),
    );
  });

  it('cannot be moved to where another is, and can be moved away', async () => {
    await clear();
    await write({ gpu: 0, slotStart: 0, slotSize: 2, turn: 0 });
    await write({ gpu: 0, slotStart: 4, slotSize: 2, turn: 1 });
    const move = (change: string) => isWritten(fixture.query(`UPDATE lease SET ${change} WHERE turn = 1`));
    expect(await move('slot_start = 1')).toBe(false);
    expect(await move('slot_size = 3, slot_start = 0')).toBe(false);
    expect(await move('turn = 0')).toBe(false);
    expect(await move('slot_start = 2')).toBe(true);
    expect(await move(`slot_start = 0, gpu_id = ${gpuIds[1]}`)).toBe(true);
    expect(await move('slot_start = NULL, turn = NULL')).toBe(false);
  });

  it('of two that are under way at once for one place: the second waits for the first, and only one is there', async () => {
    for (const contended of [
      { slotStart: 0, slotSize: 4, turn: null },
      { slotStart: null, slotSize: 1, turn: 3 },
    ]) {
      await clear();
      const first = fixture.get(DataSource).createQueryRunner();
      await first.connect();
      try {
        await first.startTransaction();
        await first.query(insertion, valuesOf({ gpu: 0, ...contended }));
        const second = isWritten(write({ gpu: 0, ...contended }));
        await untilLockWaits(fixture);
        await first.commitTransaction();
        expect(await second).toBe(false);
      } finally {
        await first.release();
      }
      expect(await fixture.query('SELECT FROM lease')).toHaveLength(1);
    }
  });
});

describe('a GPU', () => {
  const moves = async (...changes: string[]) =>
    isWritten(
      fixture.get(DataSource).transaction(async (manager) => {
        for (const change of changes) await manager.query(`UPDATE gpu SET ${change} WHERE gpu_id = $1`, [gpuIds[0]]);
      }),
    );

  it.each(['spatial', 'temporal', 'configured_temporal'])(
    'in %s cannot be left with what another mode has',
    async (state) => {
      const [own, other] = state === 'spatial' ? ['slots_used', 'turns_used'] : ['turns_used', 'slots_used'];
      expect(await moves(`state = 'to_temporal', slots_used = 3, turns_used = 3`)).toBe(true);
      expect(await moves(`state = '${state}'`)).toBe(false);
      expect(await moves(`state = '${state}'`, `${other} = 0`)).toBe(true);
      expect(await moves(`${other} = 8`)).toBe(false);
      expect(await moves(`${own} = 1`)).toBe(true);
    },
  );

  it('that was left so once can be given back', async () => {
    await fixture.query('ALTER TABLE gpu DISABLE TRIGGER gpu_mode');
    await moves(`state = 'spatial', slots_used = 3, turns_used = 8`);
    await fixture.query('ALTER TABLE gpu ENABLE TRIGGER gpu_mode');
    expect(await moves('slots_used = 1')).toBe(true);
    expect(await moves('turns_used = 0')).toBe(true);
  });
});
