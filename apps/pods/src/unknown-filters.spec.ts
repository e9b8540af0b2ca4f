import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { gpuaasBatches } from '@atoll/contracts/gpuaas';
import { podLogs, pods, sharedVolumes, vms } from '@atoll/contracts/pods';
import { AppError } from '@atoll/errors';
import { statementsOf } from '@atoll/testing';
import { errorOf, PodsFixture, type ToldTeam } from './pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
let other: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  [team, other] = [await fixture.team(), await fixture.team()];
});
afterEach(() => {
  fixture.neighbours.failing = undefined;
});
afterAll(() => fixture.stop());

const listed = {
  pods: (subscription_id: string) => fixture.call(pods.list, { team_id: team.team_id, subscription_id }, team.member),
  vms: (region_id: string) => fixture.call(vms.list, { team_id: team.team_id, region_id }, team.member),
  volumes: (region_id: string) => fixture.call(sharedVolumes.list, { team_id: team.team_id, region_id }, team.member),
  logs: (gpuaas_id: string) => fixture.call(podLogs.read, { gpuaas_id }, team.member),
};

it.each([
  ['pods', 'No such subscription.'],
  ['vms', 'No such region.'],
  ['volumes', 'No such region.'],
  ['logs', 'No such gpuaas.'],
] as const)('a listing of %s of what does not exist is not found', async (what, message) => {
  const refused = await errorOf(listed[what]('999999999'));
  expect([refused.code, refused.message]).toEqual(['not_found', message]);
});

it('the subscription of another team is not found in the same words', async () => {
  const refused = await errorOf(listed.pods(other.subscription_id));
  expect([refused.code, refused.message]).toEqual(['not_found', 'No such subscription.']);
});

it('the subscription of another team is looked for as one that does not exist', async () => {
  await fixture.create(other);
  const { asked } = fixture.neighbours;
  const lookFor = async (id: string) => {
    const before = asked.length;
    const statements = await statementsOf(() => errorOf(listed.pods(id)));
    return { statements: statements.map(({ text }) => text), asked: asked.slice(before) };
  };
  const unknown = await lookFor('999999999');
  expect(unknown.asked).toEqual([gpuaasBatches.subscriptions.subject]);
  expect(await lookFor(other.subscription_id)).toEqual(unknown);
});

it('where something exists and holds nothing, the listing is empty', async () => {
  expect((await listed.pods(team.subscription_id)).data).toEqual([]);
  for (const what of ['vms', 'volumes', 'logs'] as const) expect((await listed[what]('2')).data).toEqual([]);
});

it('logs of a pod are narrowed to another GPU service, unless that does not exist', async () => {
  const { pod_name } = await fixture.create(team);
  const read = (gpuaas_id: string) => fixture.call(podLogs.read, { pod_name, gpuaas_id }, team.member);
  expect((await read('2')).data).toEqual([]);
  expect((await errorOf(read('999999999'))).message).toBe('No such gpuaas.');
});

const away = () => {
  fixture.neighbours.failing = new AppError('unavailable', 'It is away.');
};

it('pods of a subscription are listed while gpuaas does not answer, and none once they are deleted', async () => {
  const owner = await fixture.team();
  const { team_id, subscription_id } = owner;
  const list = () => fixture.call(pods.list, { team_id, subscription_id }, owner.member);
  const pod = await fixture.running(owner);
  away();
  expect((await list()).data.map(({ pod_name }) => pod_name)).toEqual([pod.pod_name]);
  fixture.neighbours.failing = undefined;
  await fixture.call(pods.delete, { pod_name: pod.pod_name }, owner.member);
  await fixture.untilDeleted(pod);
  away();
  expect((await list()).data).toEqual([]);
});

it('a region is known by any of its GPU services while gpuaas does not answer', async () => {
  await fixture.query('DELETE FROM gpu_service');
  const { volume_id } = await fixture.createVolume(team, { gpuaas_id: '1' });
  away();
  expect((await listed.volumes('1')).data.map((volume) => volume.volume_id)).toContain(volume_id);
  expect((await listed.vms('1')).data).toEqual([]);
});
