import { describe, expect, it } from '@jest/globals';
import { describeGpu, holdersShown, shapeOf } from './gpu-shape.js';

const gpu = {
  gpu_id: '7',
  board: 'A100-80GB',
  mode: 'Spatial',
  origin: 'configured',
  transition: null,
  reason: null,
  slices: [{ profile: '3g.40gb', start: 4, size: 4, state: 'occupied', subscription_id: '42' }],
  tenants: [],
} as const;
const mig = { mechanism: 'mig', replicas: null, temporal_replicas: null } as const;

describe('the drawing of a GPU', () => {
  it('has the memory slices of its board with MIG', () => {
    expect(shapeOf(gpu, mig).slots).toBe(8);
    expect(shapeOf({ ...gpu, board: 'A30-24GB', slices: [] }, mig).slots).toBe(4);
  });

  it('has the replicas of its pool with MPS, and its turns where it is shared in time', () => {
    expect(
      shapeOf({ ...gpu, board: 'L4-24GB', slices: [] }, { mechanism: 'mps', replicas: 4, temporal_replicas: null })
        .slots,
    ).toBe(4);
    const tenants = [
      { subscription_id: '1', workload_id: '9' },
      { subscription_id: '2', workload_id: null },
    ];
    const fallen = shapeOf({ ...gpu, mode: 'Temporal', slices: [], tenants }, { ...mig, temporal_replicas: 12 });
    expect(fallen.slots).toBe(12);
    expect(fallen.parts.map(({ state }) => state)).toEqual(['occupied', 'leased']);
  });

  it('never leaves out what is held, even of a pool that is not known', () => {
    expect(shapeOf({ ...gpu, board: 'L4-24GB' }, undefined).slots).toBe(8);
  });

  it('has a line of use for each holder whom the viewer may know, once, and for eight of them at most', () => {
    const slice = { profile: '1g.10gb', size: 1, state: 'occupied' } as const;
    const slices = ['42', null, '42', '43'].map((subscription_id, start) => ({ ...slice, start, subscription_id }));
    expect(holdersShown(shapeOf({ ...gpu, slices }, mig))).toEqual(['42', '43']);
    const tenants = Array.from({ length: 20 }, (_, at) => ({ subscription_id: String(at), workload_id: null }));
    expect(holdersShown(shapeOf({ ...gpu, mode: 'Temporal', slices: [], tenants }, mig))).toHaveLength(8);
  });

  it('says in words what it shows', () => {
    expect(describeGpu(shapeOf(gpu, mig), (holder) => `subscription ${holder}`)).toBe(
      'GPU 7, A100-80GB, Spatial: 4 of 8 slots held: 3g.40gb in use by subscription 42.',
    );
  });
});
