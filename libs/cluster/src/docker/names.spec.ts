import { describe, expect, it } from '@jest/globals';
import type { PodRun, PodSlice } from '../objects.js';
import { Names } from './names.js';

const names = new Names('i1');
const slice = (leaseId: string, slotStart: number): PodSlice => ({
  leaseId,
  nodeName: 'node-1',
  gpuUuid: 'GPU-1',
  board: 'A100-80GB',
  profile: '1g.10gb',
  slotStart,
  instanceId: null,
  instanceUuid: null,
  isSimulated: false,
});
const run: PodRun = {
  ref: { kind: 'pod', id: 'p1', run: 1 },
  owner: { teamId: 't1', workspaceId: 'w1' },
  podName: 'one',
  image: 'docker.io/library/nginx:1.27',
  command: ['serve', 'all'],
  env: new Map([
    ['A', '1'],
    ['B', '2'],
  ]),
  cpu: null,
  memoryGb: null,
  slices: [slice('l1', 0), slice('l2', 1)],
  volumes: [
    { volumeId: 'v1', path: '/one' },
    { volumeId: 'v2', path: '/two' },
  ],
  authorizedKeys: [],
};

describe('a container that is there under the number of a run', () => {
  it.each<[string, Partial<PodRun>]>([
    ['team', { owner: { ...run.owner, teamId: 't2' } }],
    ['workspace', { owner: { ...run.owner, workspaceId: 'w2' } }],
    ['image', { image: 'docker.io/library/nginx:1.28' }],
    ['command', { command: ['serve all'] }],
    ['set of variables', { env: new Map([['A', '1']]) }],
    ['lease', { slices: [slice('l3', 0), slice('l2', 1)] }],
    ['node', { slices: run.slices.map((each) => ({ ...each, nodeName: 'node-2' })) }],
    ['GPU', { slices: run.slices.map((each) => ({ ...each, gpuUuid: 'GPU-2' })) }],
    ['profile', { slices: run.slices.map((each) => ({ ...each, profile: '2g.20gb' })) }],
    ['slot', { slices: [slice('l1', 0), slice('l2', 2)] }],
    ['volume', { volumes: run.volumes.map((each) => ({ ...each, volumeId: `${each.volumeId}0` })) }],
    ['path of a volume', { volumes: run.volumes.map((each) => ({ ...each, path: `/at${each.path}` })) }],
  ])('is another one where it was asked for with another %s', (_, other) => {
    expect(names.isRun(names.podLabels({ ...run, ...other }), run)).toBe(false);
  });

  it('is the same one in whatever order its parts are read, and where it does not say what it was asked for', () => {
    const read = {
      ...run,
      env: new Map([...run.env].toReversed()),
      slices: run.slices.toReversed(),
      volumes: run.volumes.toReversed(),
    };
    expect(names.isRun(names.podLabels(read), run)).toBe(true);
    expect(names.isRun(names.labels(run.ref, run.owner), run)).toBe(true);
  });
});
