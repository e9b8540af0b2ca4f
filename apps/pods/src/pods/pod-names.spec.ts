import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { newId, Transactions } from '@atoll/database';
import { untilLockWaits } from '@atoll/testing';
import type { EntityManager } from 'typeorm';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { PodNames } from './pod-names.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(() => fixture.stop());

const drawn = () => jest.spyOn(fixture.get(PodNames), 'draw');
/** A copy of a pod, with another name. */
const copy = (manager: EntityManager, pod_id: string, pod_name: string) =>
  manager.query(
    `INSERT INTO pod SELECT (jsonb_populate_record(pod, jsonb_build_object('pod_id', gen_random_uuid(), 'pod_name', $2::text))).*
     FROM pod WHERE pod_id = $1`,
    [pod_id, pod_name],
  );

it('a pod is given a name that no pod has or had, however many that are drawn for it are taken', async () => {
  const { pod_id, pod_name } = await fixture.create(team);
  await fixture.query(`UPDATE pod SET state = 'deleted' WHERE pod_id = $1`, [pod_id]);
  const draw = drawn();
  for (let taken = 0; taken < 10; taken += 1) draw.mockReturnValueOnce(pod_name);
  expect((await fixture.create(team)).pod_name).not.toBe(pod_name);
});

it('a pod is refused where all names that are drawn for it are taken', async () => {
  const { pod_name } = await fixture.create(team);
  drawn().mockReturnValue(pod_name);
  expect(await errorOf(fixture.create(team))).toMatchObject({
    code: 'conflict',
    message: 'Too many pods were named job: use another name.',
  });
});

it('of two pods that are given one name at the same time, the later one is refused and may be tried again', async () => {
  const { pod_id } = await fixture.create(team);
  const name = `job-${newId()}`;
  drawn().mockReturnValue(name);
  let refused: ReturnType<typeof errorOf> | undefined;
  await fixture.get(Transactions).run(async (manager) => {
    await copy(manager, pod_id, name);
    refused = errorOf(fixture.create(team));
    await untilLockWaits(fixture, { text: 'INSERT INTO', unless: refused });
  });
  expect(await refused).toMatchObject({
    code: 'conflict',
    message: `Another pod was given the name ${name} at the same time: repeat the request.`,
  });
});
