import { expect, it } from '@jest/globals';
import type { Door } from '../objects.js';
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

it('a container under the name of a door is that door where team, workspace and what it leads to are those of the door', () => {
  const door: Door = {
    ref: { kind: 'door', id: 'd1', run: 1 },
    owner: run.owner,
    podId: 'p1',
    transport: 'tcp',
    port: 80,
    externalPort: 30_000,
    tls: null,
  };
  const labels = names.doorLabels(door);
  expect(names.isDoor(labels, door)).toBe(true);
  const others: Door[] = [
    { ...door, owner: { ...door.owner, teamId: 't2' } },
    { ...door, owner: { ...door.owner, workspaceId: 'w2' } },
    { ...door, podId: 'p2' },
    { ...door, port: 81 },
    { ...door, externalPort: 30_001 },
    { ...door, transport: 'udp' },
  ];
  expect(others.map((other) => names.isDoor(labels, other))).toEqual(others.map(() => false));
  // One of an earlier release does not say where it leads.
  expect(names.isDoor(names.labels(door.ref, door.owner), door)).toBe(true);
});

it('what another installation has on the same engine is nothing of ours, whatever its labels say besides', () => {
  const volume = { kind: 'volume', id: 'v1', run: 0, teamId: 't1' } as const;
  for (const ref of [run.ref, volume]) {
    const labels = names.labels(ref, run.owner);
    expect([names.refOf(labels), names.isOfTeam(labels, 't1'), names.isOfTeam(labels, 't2')]).toEqual([
      ref,
      true,
      false,
    ]);
    const theirs = new Names('i2').labels(ref, run.owner);
    expect([names.refOf(theirs), names.isOfTeam(theirs, 't1')]).toEqual([null, false]);
  }
});

it('a volume of a team is never looked for under the second name of another team', () => {
  const namesOf = (teamId: string) => names.ofVolume({ kind: 'volume', id: 'v1', run: 0, teamId });
  const [[first, one], [same, other]] = [namesOf('t1'), namesOf('t2')];
  expect(same).toBe(first);
  expect(new Set([first, one, other]).size).toBe(3);
});
