import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { pods } from '@atoll/contracts/pods';
import type { AppError } from '@atoll/errors';
import { untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { PodLimitsService } from '../limits/pod-limit.service.js';
import { requireRoom } from './pod-room.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const subscription = (vgpus: number, more: object = {}) =>
  fixture.neighbours.subscription(team.team_id, team.workspace_id, vgpus, more);
const refusal = (held: number, used: number) => ({
  code: 'insufficient_capacity',
  message: `The subscription has ${held} vGPUs and ${used} of them are in use. Available: ${held - used}.`,
});

it('is what the pods that were accepted leave of their subscription, before any has asked for its workload', async () => {
  const { subscription_id } = subscription(5);
  const create = (vgpus: number) => fixture.create(team, { subscription_id, vgpus });
  await create(2);
  expect(await errorOf(create(4))).toMatchObject(refusal(5, 2));
  const last = await create(3);
  expect(await errorOf(create(1))).toMatchObject(refusal(5, 5));
  await fixture.until(last, 'running');
  expect((await errorOf(create(1))).code).toBe('insufficient_capacity');
  await fixture.call(pods.delete, { pod_name: last.pod_name }, team.member);
  await fixture.untilDeleted(last);
  await create(3);
});

it('is what workloads that are no pod’s leave, too', async () => {
  const { subscription_id } = subscription(5, { vgpus_beside_pods: 3 });
  const create = (vgpus: number) => fixture.create(team, { subscription_id, vgpus });
  await create(1);
  expect(await errorOf(create(2))).toMatchObject(refusal(5, 4));
  await create(1);
});

it('is needed by a pod that starts again, but not by one that ends or has ended', async () => {
  const { subscription_id } = subscription(1);
  const pod = await fixture.running(team, { subscription_id });
  await fixture.act(pod, 'stop', team);
  await fixture.until(pod, 'stopped');
  const other = await fixture.create(team, { subscription_id });
  expect(await errorOf(fixture.act(pod, 'start', team))).toMatchObject(refusal(1, 1));
  await fixture.act(other, 'stop', team);
  expect((await fixture.act(pod, 'start', team)).status).toBe('pending');
});

it('is needed by a pod that comes to its end while its start is on its way: it is to be started again', async () => {
  const { subscription_id } = subscription(1);
  const pod = await fixture.running(team, { subscription_id });
  await fixture.act(pod, 'stop', team);
  const limits = fixture.get(PodLimitsService);
  const effective = limits.effective.bind(limits);
  jest.spyOn(limits, 'effective').mockImplementationOnce(async (teamId) => {
    await fixture.until(pod, 'stopped');
    return effective(teamId);
  });
  expect(await errorOf(fixture.act(pod, 'start', team))).toMatchObject({
    code: 'conflict',
    message: 'The pod has just stopped: start it again.',
  });
  expect((await fixture.act(pod, 'start', team)).status).toBe('pending');
});

it('is given to as many as there are vGPUs, however many are created at once', async () => {
  const { subscription_id } = subscription(2);
  const create = () => fixture.create(team, { subscription_id });
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, create));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
});

it('is counted after what another replica has under way at the same time', async () => {
  const found = subscription(2);
  const { subscription_id } = found;
  const { pod_id } = await fixture.create(team, { subscription_id });
  let answer: Promise<AppError> | undefined;
  await fixture.get(DataSource).transaction(async (manager) => {
    await requireRoom(manager, found, 1);
    await manager.query(
      `INSERT INTO pod SELECT (jsonb_populate_record(pod, '{"pod_id":"01a202e6-d008-75a1-baa3-ef10f7826169","pod_name":"of-another"}')).*
       FROM pod WHERE pod_id = $1`,
      [pod_id],
    );
    answer = errorOf(fixture.create(team, { subscription_id }));
    await untilLockWaits(fixture, { unless: answer });
  });
  expect(await answer).toMatchObject(refusal(2, 2));
});

it('is for no more than 1,000 pods of a team that are stopped or failed', async () => {
  const { subscription_id } = subscription(5);
  const pod = await fixture.running(team, { subscription_id });
  await fixture.act(pod, 'stop', team);
  await fixture.until(pod, 'stopped');
  await fixture.query(
    `INSERT INTO pod SELECT (jsonb_populate_record(pod, jsonb_build_object('pod_id', gen_random_uuid(), 'pod_name', 'copy-' || n,
       'state', CASE WHEN n < 5 THEN 'failed' ELSE 'stopped' END))).*
     FROM pod, generate_series(1, 1000 - (SELECT count(*)::int FROM pod WHERE team_id = $2 AND state IN ('stopped', 'failed'))) n WHERE pod_id = $1`,
    [pod.pod_id, team.team_id],
  );
  const message = 'The team has 1000 stopped or failed pods, the maximum for a team. Delete some first.';
  expect(await errorOf(fixture.create(team, { subscription_id }))).toMatchObject({ code: 'conflict', message });
  await fixture.create(await fixture.team());
  expect((await fixture.act(pod, 'start', team)).status).toBe('pending');
  await fixture.create(team, { subscription_id });
});
