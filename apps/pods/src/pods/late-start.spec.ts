import type { ClusterDriver } from '@atoll/cluster';
import { pods } from '@atoll/contracts/pods';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { frozenStart, heldStart as held, toldNoMore } from '../late-start-fixture.js';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
let driver: ClusterDriver;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 8);
  driver = await fixture.simulated.driverOf('1');
});
afterAll(() => fixture.stop());

const heldStart = () => held(driver, 'startPod', () => fixture.work());

/** What another process does with the pod when the claim of the one that starts it has run out. */
async function takeOver(): Promise<void> {
  await fixture.query(
    'UPDATE pod SET claim_token = NULL, claimed_until = NULL, due_at = clock_timestamp(), parked_until = NULL',
  );
}

it('a run is wanted until its pod is stopped, and never again, whoever starts it', async () => {
  const pod = await fixture.create(team);
  const late = await heldStart();
  expect(await late.isWanted()).toBe(true);
  await fixture.act(pod, 'stop', team);
  expect(await late.isWanted()).toBe(false);
  await takeOver();
  await fixture.until(pod, 'stopped');
  expect(await late.isWanted()).toBe(false);
  await fixture.act(pod, 'start', team);
  await fixture.until(pod, 'running');
  expect(await late.isWanted()).toBe(false);
  await late.goOn();
  const refs = [late.run, late.run + 1].map((run) => ({ kind: 'pod', id: pod.pod_id, run }) as const);
  const phases = async () => (await driver.observePods(refs, AbortSignal.timeout(10_000))).map(({ phase }) => phase);
  expect(await phases()).toEqual(['absent', 'running']);
});

it('a process whose claim has run out is not told that a run is wanted, although it is', async () => {
  const pod = await fixture.create(team);
  const first = await heldStart();
  await takeOver();
  const second = await heldStart();
  await toldNoMore(first);
  await Promise.all([first.goOn(), second.goOn()]);
  await fixture.until(pod, 'running');
});

it('a run is not wanted when its pod is restarted or deleted while it starts', async () => {
  const pod = await fixture.create(team);
  const first = await heldStart();
  await fixture.act(pod, 'restart', team);
  expect(await first.isWanted()).toBe(false);
  await takeOver();
  const second = await heldStart();
  expect([await second.isWanted(), await first.isWanted()]).toEqual([true, false]);
  await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member);
  expect(await second.isWanted()).toBe(false);
  await Promise.all([first.goOn(), second.goOn()]);
});

it('a pod that another process has brought to run stays, when the one that made it was frozen and goes on', async () => {
  const pod = await fixture.create(team);
  const goOn = await frozenStart(driver, 'startPod', () => fixture.work());
  await takeOver();
  await fixture.until(pod, 'running');
  await goOn();
  const ref = { kind: 'pod', id: pod.pod_id, run: 1 } as const;
  expect((await driver.observePods([ref], AbortSignal.timeout(10_000))).map(({ phase }) => phase)).toEqual(['running']);
});
