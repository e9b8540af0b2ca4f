import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sharedVolumes, type CreateSharedVolume, type SharedVolume } from '@atoll/contracts/pods';
import {
  deletionCalledOff,
  teamChanged,
  teamDeletionRequested,
  workspaceDeletionRequested,
  type TeamDeletionAnswered,
} from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { Outbox } from '@atoll/events';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
});
afterAll(() => fixture.stop());

const remove = ({ volume_id }: SharedVolume, { member } = team) =>
  fixture.call(sharedVolumes.delete, { volume_id }, member);
const resize = ({ volume_id }: SharedVolume, size_in_gb: number, { member } = team) =>
  fixture.call(sharedVolumes.resize, { volume_id, size_in_gb }, member);

describe('what refuses a volume', () => {
  it('is a region that does not exist, and a name that the team has', async () => {
    expect((await errorOf(fixture.createVolume(team, { region_id: '77' }))).message).toBe('No such region.');
    const volume = await fixture.volume(team, { name: 'taken' });
    expect((await errorOf(fixture.createVolume(team, { name: 'taken' }))).code).toBe('conflict');
    await fixture.volume(await fixture.team(), { name: 'taken' });
    await remove(volume);
    await fixture.untilVolumeDeleted(volume);
    await fixture.volume(team, { name: 'taken' });
  });

  it('is the most that a team may have, however many are created at once', async () => {
    const full = await fixture.team('member', 100);
    const { volume_id } = await fixture.volume(full);
    await fixture.query(
      `INSERT INTO shared_volume OVERRIDING USER VALUE
       SELECT (jsonb_populate_record(v, jsonb_build_object('state', 'failed', 'name', 'old-' || n))).*
       FROM shared_volume v, generate_series(1, 997) n WHERE volume_id = $1`,
      [volume_id],
    );
    const outcomes = await Promise.allSettled(
      Array.from({ length: 6 }, () => fixture.createVolume(full, { name: newId() })),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    expect(await errorOf(fixture.createVolume(full))).toMatchObject({
      code: 'conflict',
      message: 'The team has 1000 shared volumes, the maximum for a team.',
    });
    await fixture.volume(await fixture.team());
  });

  it('is a suspension, which lets it be deleted', async () => {
    const suspended = await fixture.team();
    const volume = await fixture.volume(suspended);
    const { team_id, workspace_id } = suspended;
    const workspaces = [{ id: workspace_id, name: 'default' }];
    await fixture.tell(teamChanged, {
      team_id,
      name: 'x',
      status: 'active',
      is_suspended: true,
      revision: 2,
      workspaces,
    });
    for (const attempt of [fixture.createVolume(suspended), resize(volume, 99, suspended)])
      expect((await errorOf(attempt)).code).toBe('team_suspended');
    await remove(volume, suspended);
    await fixture.untilVolumeDeleted(volume);
  });

  const bad: [string, Partial<Record<keyof CreateSharedVolume, unknown>>][] = [
    ...[0, -1, 1.5, '1e3', 100_001, null].map((size_in_gb): [string, object] => ['size_in_gb', { size_in_gb }]),
    ...['', ' ', 'a\nb', 'x'.repeat(101)].map((name): [string, object] => ['name', { name }]),
    ...['0', '-1', 'x', 1.5].map((region_id): [string, object] => ['region_id', { region_id }]),
  ];
  it.each(bad)('is %s in a form that it may not have: %j', async (path, more) => {
    const error = await errorOf(fixture.createVolume(team, more as Partial<CreateSharedVolume>));
    expect([error.code, error.details.errors?.[0]?.path]).toEqual(['invalid_input', path]);
  });
});

describe('a team that is deleted', () => {
  const answerTo = async (attempt_id: string) => {
    while ((await fixture.get(Outbox).pending()) > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const answers = fixture.events.map(({ payload }) => payload as TeamDeletionAnswered);
    return answers.find((answer) => answer.attempt_id === attempt_id);
  };

  it('is told of its volumes, nothing new comes once it has none, and a forced deletion takes them with it', async () => {
    const own = await fixture.team();
    const volume = await fixture.volume(own);
    const pod = await fixture.running(own, { volumes: [{ volume_id: volume.volume_id, path: '/data' }] });
    const { team_id, workspace_id } = own;
    const [whole, part, forced, last] = [newId(), newId(), newId(), newId()];
    const holdings = [
      { kind: 'pod', count: 1 },
      { kind: 'shared_volume', count: 1 },
    ];
    await fixture.tell(teamDeletionRequested, { team_id, revision: 2, attempt_id: whole });
    expect(await answerTo(whole)).toMatchObject({
      holder: 'pods',
      holds: '1 pod, 1 shared volume',
      remaining: holdings,
    });
    await fixture.tell(workspaceDeletionRequested, { team_id, workspace_id, revision: 2, attempt_id: part });
    expect((await answerTo(part))?.remaining).toEqual(holdings);
    await fixture.tell(deletionCalledOff, { team_id, revision: 3, attempt_id: whole });
    await fixture.tell(teamDeletionRequested, { team_id, revision: 4, attempt_id: forced, force: true });
    expect((await answerTo(forced))?.remaining).toEqual(holdings);
    expect((await errorOf(fixture.createVolume(own))).code).toBe('conflict');
    await fixture.untilVolumeDeleted(volume);
    await fixture.untilDeleted(pod);
    await fixture.tell(teamDeletionRequested, { team_id, revision: 5, attempt_id: last, force: true });
    expect(await answerTo(last)).toMatchObject({ holds: null, remaining: [] });
    expect((await fixture.usageOf(`shared_storage:${volume.volume_id}`)).at(-1)?.quantity).toBe('0');
  });
});
