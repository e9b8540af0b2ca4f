import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { imagePolicies, teamBatches, teams, type ImagePolicy, type NewImageObject } from '@atoll/contracts/teams';
import { systemContext } from '@atoll/rpc';
import { inTransactionBeside, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { errorOf, TeamsFixture, unknownId } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

const create = (...references: string[]): Promise<ImagePolicy> =>
  fixture.call(fixture.admin, imagePolicies.create, {
    name: 'approved',
    objects: references.map((reference) => ({ name: reference, reference })),
  });
const defaultPolicy = async (): Promise<ImagePolicy> => {
  const { data } = await fixture.call(fixture.admin, imagePolicies.list, { limit: 1 });
  return data[0] as ImagePolicy;
};

describe('image policies', () => {
  it('are made, read, listed from page 1, changed and deleted by the operator', async () => {
    const body = { name: 'approved', description: 'What we know', objects: [{ name: 'web', reference: 'nginx:1.29' }] };
    const made = await fixture.call(fixture.admin, imagePolicies.create, body, 'policy-1');
    expect(made).toEqual({
      ...body,
      id: expect.any(String),
      is_default: false,
      objects: [{ id: expect.any(String), name: 'web', reference: 'nginx:1.29' }],
      created_at: expect.any(String),
    });
    expect(await fixture.call(fixture.admin, imagePolicies.create, body, 'policy-1')).toEqual(made);
    expect(await fixture.call(fixture.admin, imagePolicies.get, { id: made.id })).toEqual(made);
    expect((await fixture.call(fixture.admin, imagePolicies.list, { page: 2, limit: 1 })).data).toEqual([made]);
    const renamed = await fixture.call(fixture.admin, imagePolicies.update, { id: made.id, name: 'renamed' });
    expect(renamed).toEqual({ ...made, name: 'renamed' });
    const objects: NewImageObject[] = ['zebra', 'ant'].map((name) => ({ name, reference: name }));
    const replaced = await fixture.call(fixture.admin, imagePolicies.update, { id: made.id, objects });
    expect(replaced.objects.map(({ name }) => name)).toEqual(['zebra', 'ant']);
    expect(await fixture.call(fixture.admin, imagePolicies.delete, { id: made.id })).toEqual({});
    for (const gone of [made.id, unknownId]) {
      expect((await errorOf(fixture.call(fixture.admin, imagePolicies.get, { id: gone }))).message).toBe(
        'No such image policy.',
      );
    }
  });

  it('name the object whose reference is none', async () => {
    const refused = await errorOf(create('nginx', 'Not A Reference'));
    expect([refused.code, refused.details.errors?.[0]?.path]).toEqual(['invalid_input', 'objects.1.reference']);
    const { id } = await create();
    expect((await errorOf(fixture.call(fixture.admin, imagePolicies.update, { id }))).code).toBe('invalid_input');
  });

  it('keep the default one, which has no objects', async () => {
    const { id, ...rest } = await defaultPolicy();
    expect(rest).toMatchObject({ name: 'default', is_default: true, objects: [] });
    const objects = [{ name: 'x', reference: 'x' }];
    expect((await errorOf(fixture.call(fixture.admin, imagePolicies.update, { id, objects }))).code).toBe('conflict');
    expect((await errorOf(fixture.call(fixture.admin, imagePolicies.delete, { id }))).code).toBe('conflict');
    expect(await fixture.call(fixture.admin, imagePolicies.update, { id, description: 'Everything.' })).toMatchObject({
      description: 'Everything.',
    });
  });

  it('are assigned in place of the one before, shown in the team, and not deleted while they are', async () => {
    const { team, keys } = await fixture.createTeam('viewer');
    const [one, other] = [await create('nginx'), await create('python')];
    for (const { id } of [one, other])
      await fixture.call(fixture.admin, imagePolicies.assign, { id, team_id: team.id }, `assign-${id}`);
    expect((await fixture.call(keys[0] ?? '', teams.get, { team_id: team.id })).policy_info).toEqual({
      policy_id: other.id,
      policy_name: 'approved',
    });
    expect(await fixture.call(fixture.admin, imagePolicies.delete, { id: one.id })).toEqual({});
    expect((await errorOf(fixture.call(fixture.admin, imagePolicies.delete, { id: other.id }))).code).toBe('conflict');
    await fixture.call(fixture.admin, teams.delete, { team_id: team.id });
    expect(await fixture.call(fixture.admin, imagePolicies.delete, { id: other.id })).toEqual({});
    const assign = (id: string, team_id: string) =>
      errorOf(fixture.call(fixture.admin, imagePolicies.assign, { id, team_id }));
    expect((await assign(unknownId, team.id)).message).toBe('No such image policy.');
    expect((await assign((await defaultPolicy()).id, team.id)).message).toBe('No such team.');
  });

  it('are not deleted and assigned at once', async () => {
    const { team } = await fixture.createTeam();
    const { id } = await create();
    const [assigned, deleted] = await Promise.allSettled([
      fixture.call(fixture.admin, imagePolicies.assign, { id, team_id: team.id }),
      fixture.call(fixture.admin, imagePolicies.delete, { id }),
    ]);
    expect([assigned.status, deleted.status].toSorted()).toEqual(['fulfilled', 'rejected']);
    for (const one of [assigned, deleted]) {
      if (one.status === 'rejected') expect(['conflict', 'not_found']).toContain((one.reason as { code: string }).code);
    }
  });

  it('that are deleted while a team is created with them are not found', async () => {
    const { id } = await create();
    const [creating] = await inTransactionBeside(fixture.get(DataSource), async (other) => {
      await other.query('DELETE FROM image_policy WHERE id = $1', [id]);
      const begun = errorOf(fixture.call(fixture.admin, teamBatches.create, { name: 'New', image_policy_id: id }));
      await untilLockWaits(fixture.get(DataSource), { unless: begun });
      await other.commitTransaction();
      return [begun];
    });
    expect((await creating)?.message).toBe('No such image policy.');
  });
});

describe('the images of a team', () => {
  it('are all listed unless a limit is sent, to every member and to the operator', async () => {
    const { team, keys } = await fixture.createTeam('viewer');
    const policy = await create(...Array.from({ length: 12 }, (_, index) => `image-${index}`));
    expect(await fixture.call(keys[0] ?? '', imagePolicies.teamImages, { team_id: team.id })).toEqual({ data: [] });
    await fixture.call(fixture.admin, imagePolicies.assign, { id: policy.id, team_id: team.id });
    for (const key of [keys[0] ?? '', fixture.admin]) {
      expect(await fixture.call(key, imagePolicies.teamImages, { team_id: team.id })).toEqual({ data: policy.objects });
    }
    expect(
      await fixture.call(fixture.admin, imagePolicies.teamImages, { team_id: team.id, page: 2, limit: 5 }),
    ).toEqual({
      data: policy.objects.slice(5, 10),
      pagination: { page: 2, limit: 5, total: 12 },
    });
    expect((await errorOf(fixture.call(fixture.admin, imagePolicies.teamImages, { team_id: unknownId }))).code).toBe(
      'not_found',
    );
  });

  it('are checked by their one spelling: by default all, under a policy what it names, under an empty one none', async () => {
    const { team } = await fixture.createTeam();
    const check = async (image: string) =>
      (await fixture.ask(imagePolicies.check, { team_id: team.id, image }, systemContext('pods'))).allowed;
    expect(await check('anything/at:all')).toBe(true);
    const { id } = await create('nginx', 'ghcr.io/acme/model:v2');
    await fixture.call(fixture.admin, imagePolicies.assign, { id, team_id: team.id });
    expect(await check('docker.io/library/nginx:1.29')).toBe(true);
    expect(await check('ghcr.io/acme/model:v2')).toBe(true);
    expect(await check('ghcr.io/acme/model')).toBe(false);
    expect(await check('docker.io.evil.com/nginx')).toBe(false);
    const empty = await create();
    await fixture.call(fixture.admin, imagePolicies.assign, { id: empty.id, team_id: team.id });
    expect(await check('nginx')).toBe(false);
    for (const registry of [
      '169.254.169.254',
      '169.254.169.254:80',
      '169.254.170.2',
      '100.100.100.200',
      '168.63.129.16',
      '[fd00:ec2::254]',
      '[fd20:ce::254]',
      '[::ffff:a9fe:a9fe]:5000',
      '[64:ff9b::a9fe:a9fe]:80',
      '[2002:a9fe:a9fe::]:80',
      '2852039166:80',
      '0xa9fea9fe:80',
      '169.16689662',
      '0251.0376.0251.0376',
      '169.254.0xa9fe:80',
    ]) {
      expect((await errorOf(check(`${registry}/latest/meta-data`))).details.errors).toMatchObject([
        { path: 'image', code: 'isRegistry' },
      ]);
    }
    const refused = await errorOf(check('Not A Reference'));
    expect([refused.code, refused.details.errors?.[0]?.path]).toEqual(['invalid_input', 'image']);
    expect(
      (await errorOf(fixture.ask(imagePolicies.check, { team_id: unknownId, image: 'nginx' }, systemContext('pods'))))
        .code,
    ).toBe('not_found');
  });
});
