import { expect, it } from '@jest/globals';
import { Names } from './names.js';

const names = new Names('i1');
const run = {
  ref: { kind: 'pod', id: 'p1', run: 1 },
  requestedAt: new Date('2026-11-30T08:15:20.123Z'),
  owner: { teamId: 't1', workspaceId: 'w1' },
  slices: [],
} as const;

it('a container under the number of a run is that run where it was requested when the run was, or does not say when', () => {
  const labels = names.podLabels(run);
  expect(names.isRun(labels, { requestedAt: new Date(run.requestedAt) })).toBe(true);
  expect(names.isRun(labels, { requestedAt: new Date('2026-11-30T08:15:20.124Z') })).toBe(false);
  expect(names.isRun(names.labels(run.ref, run.owner), run)).toBe(true);
});
