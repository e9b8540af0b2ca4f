import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { exposedServices, vms } from '@atoll/contracts/pods';
import { teamDeletionAnswered, teamDeletionRequested, type TeamDeletionAnswered } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { ExpiredClosings } from '@atoll/team-directory';
import { statementsOf } from '@atoll/testing';
import { PodsFixture } from '../pods-fixture.js';

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start();
});
afterAll(() => fixture.stop());

it('a team that is deleted by force has its pods ended by as many statements as one pod, each billed to its end and no longer exposed', async () => {
  const counts: number[] = [];
  for (const many of [1, 6]) {
    const team = await fixture.team('member', many);
    const all = await Promise.all(Array.from({ length: many }, () => fixture.create(team)));
    for (const pod of all) await fixture.until(pod, 'running');
    const { pod_name } = all[0] ?? { pod_name: '' };
    await fixture.call(
      exposedServices.expose,
      { pod_name, service_name: 'web', port: 80, protocol: 'HTTP' },
      team.member,
    );
    const request = { team_id: team.team_id, revision: 2, attempt_id: newId(), force: true };
    const sent = await statementsOf(() => fixture.tell(teamDeletionRequested, request));
    counts.push(sent.filter(({ text }) => /\b(pod|exposure|outbox)\b/.test(text)).length);
    for (const pod of all) {
      await fixture.untilDeleted(pod);
      expect((await fixture.usageOf(`pod:${pod.pod_id}`)).at(-1)).toMatchObject({ quantity: '0' });
    }
  }
  expect(counts[0]).toBeGreaterThan(3);
  expect(counts[1]).toBe(counts[0]);
});

it('a team that holds nothing is told so, whatever another holds', async () => {
  const [team, other] = [await fixture.team(), await fixture.team()];
  await fixture.create(other);
  await fixture.createVolume(other);
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
  await fixture.createVm(other);
  const answerTo = async ({ team_id }: typeof team) => {
    const attempt_id = newId();
    await fixture.tell(teamDeletionRequested, { team_id, revision: 2, attempt_id });
    const told = await fixture.published<TeamDeletionAnswered>(teamDeletionAnswered.name);
    return told.find((answer) => answer.attempt_id === attempt_id)?.remaining;
  };
  expect(await answerTo(team)).toEqual([]);
  expect((await answerTo(other))?.map(({ kind, count }) => [kind, count])).toEqual([
    ['pod', 1],
    ['vm', 1],
    ['shared_volume', 1],
  ]);
});

it('that a team was told to hold nothing is forgotten a day after it has expired', async () => {
  const { team_id } = await fixture.team();
  await fixture.tell(teamDeletionRequested, { team_id, revision: 2, attempt_id: newId() });
  const closings = () => fixture.query('SELECT FROM team_closing WHERE team_id = $1', [team_id]);
  expect(await closings()).toHaveLength(1);
  await fixture.query(`UPDATE team_closing SET until = until - interval '25 hours' WHERE team_id = $1`, [team_id]);
  await fixture.get(ExpiredClosings).removeSome();
  expect(await closings()).toEqual([]);
});
