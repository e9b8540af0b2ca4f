import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { podBatches, pods, podsAtOnce, sharedVolumes, vms, type PodsAfter } from '@atoll/contracts/pods';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
let other: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  [team, other] = [await fixture.team('member', 100), await fixture.team()];
});
afterAll(() => fixture.stop());

/** A team like another, with a subscription more. */
function onAnother(of: ToldTeam): ToldTeam {
  return { ...of, subscription_id: fixture.neighbours.subscription(of.team_id, of.workspace_id, 10).subscription_id };
}

describe('pods of subscriptions', () => {
  const read = (asked: Omit<PodsAfter, 'team_id'>, { team_id, member } = team) =>
    fixture.call(podBatches.ofSubscriptions, { team_id, ...asked }, member);

  it('are those of the ones that are named, without what is deleted, and none of another team', async () => {
    const [second, third] = [onAnother(team), onAnother(team)];
    const volume = await fixture.volume(team);
    const volumes = [{ volume_id: volume.volume_id, path: '/data' }];
    const [one, gone] = [await fixture.create(team, { vgpus: 2, volumes }), await fixture.create(team)];
    const [two] = [await fixture.create(second), await fixture.create(third)];
    const theirs = await fixture.create(other);
    await fixture.call(pods.delete, { pod_name: gone.pod_name }, team.member);
    await fixture.untilDeleted(gone);
    const subscription_ids = [team.subscription_id, second.subscription_id, other.subscription_id];
    const { data } = await read({ subscription_ids });
    expect(data).toEqual([
      {
        pod_id: one.pod_id,
        pod_name: one.pod_name,
        subscription_id: team.subscription_id,
        status: (await fixture.pod(one)).status,
        vgpus: 2,
        image: one.image,
        volumes,
      },
      expect.objectContaining({ pod_id: two?.pod_id, subscription_id: second.subscription_id }),
    ]);
    expect(await read({ subscription_ids, pod_id: one.pod_id })).toEqual({ data: data.slice(1) });
    expect(
      (await errorOf(read({ subscription_ids: [theirs.subscription_id] }, { ...other, member: team.member }))).code,
    ).toBe('not_found');
  });

  it('are read a thousand at once, and each is on one page whatever is deleted between two of them', async () => {
    const large = onAnother(team);
    const { pod_id, pod_name } = await fixture.create(large);
    await fixture.query(
      `INSERT INTO pod SELECT (jsonb_populate_record(p, jsonb_build_object('pod_id', lpad(to_hex(n), 32, '0')::uuid, 'pod_name', 'copy-' || n))).*
       FROM pod p, generate_series(1, ${podsAtOnce + 1}) n WHERE pod_id = $1`,
      [pod_id],
    );
    const subscription_ids = [large.subscription_id];
    const first = (await read({ subscription_ids })).data;
    expect(first).toHaveLength(podsAtOnce);
    await fixture.query(`UPDATE pod SET state = 'deleted', due_at = NULL WHERE pod_id = ANY ($1::uuid[])`, [
      first.slice(0, 900).map((pod) => pod.pod_id),
    ]);
    const { data: rest } = await read({ subscription_ids, pod_id: first.at(-1)?.pod_id ?? '' });
    expect(rest.map((pod) => pod.pod_name)).toEqual([`copy-${podsAtOnce + 1}`, pod_name]);
  });
});

describe('volumes', () => {
  it('have the path at which a pod or VM mounts them, of several the latest, and those alone that are asked for', async () => {
    await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
    const own = await fixture.team('member', 100);
    const [free, ofPods, ofVm, gone] = [
      await fixture.volume(own),
      await fixture.volume(own),
      await fixture.volume(own),
      await fixture.volume(own),
    ];
    const at = ({ volume_id }: { volume_id: string }, path: string) => ({ volumes: [{ volume_id, path }] });
    await fixture.create(own, at(ofPods, '/early'));
    await fixture.create(own, at(ofPods, '/late'));
    const deleted = await fixture.create(own, at(ofPods, '/deleted'));
    await fixture.create(own, at(ofVm, '/early'));
    await fixture.createVm(own, at(ofVm, '/vm'));
    await fixture.call(pods.delete, { pod_name: deleted.pod_name }, own.member);
    await fixture.untilDeleted(deleted);
    await fixture.call(sharedVolumes.delete, { volume_id: gone.volume_id }, own.member);
    await fixture.untilVolumeDeleted(gone);
    await fixture.volume(other);
    const { team_id, member } = own;
    const { data: shown } = await fixture.call(sharedVolumes.list, { team_id }, member);
    const paths = [null, '/late', '/vm'];
    const all = [free, ofPods, ofVm].map(({ volume_id }, index) => ({
      ...shown.find((one) => one.volume_id === volume_id),
      mount_point: paths[index],
    }));
    expect(await fixture.call(podBatches.volumes, { team_id }, member)).toEqual({ data: all });
    const volume_ids = [ofVm.volume_id, gone.volume_id];
    expect(await fixture.call(podBatches.volumes, { team_id, volume_ids }, member)).toEqual({ data: all.slice(2) });
    const foreign = { team_id: other.team_id, volume_ids: [ofVm.volume_id] };
    expect(await fixture.call(podBatches.volumes, foreign, other.member)).toEqual({ data: [] });
  });
});

it('how pods are reached is told of one subscription alone where it is named', async () => {
  const own = await fixture.team();
  const second = onAnother(own);
  const [one, two] = [await fixture.create(own), await fixture.create(second)];
  const namesOf = async (asked: { subscription_id?: string }) =>
    (await fixture.call(podBatches.connections, { team_id: own.team_id, ...asked }, own.member)).data.map(
      ({ pod_name }) => pod_name,
    );
  expect(await namesOf({})).toEqual([one.pod_name, two.pod_name]);
  expect(await namesOf({ subscription_id: second.subscription_id })).toEqual([two.pod_name]);
  expect(await namesOf({ subscription_id: other.subscription_id })).toEqual([]);
});
