import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type UserCaller } from '@atoll/contracts';
import { sshKeys, sshKeysChanged, type SshKey, type UserKeysChanged } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { Rpc } from '@atoll/rpc';
import { generateKeyPair } from '@atoll/ssh';
import ssh2 from 'ssh2';
import { errorOf, PodsFixture } from '../pods-fixture.js';

let fixture: PodsFixture;
const changed: string[] = [];
beforeAll(async () => {
  fixture = await PodsFixture.start();
  fixture.get(Rpc).listen(sshKeysChanged, ({ user_id }) => changed.push(user_id));
});
afterAll(() => fixture.stop());

const aUser = (): Partial<UserCaller> & { userId: string } => ({ userId: newId(), scope: 'user' });
/** A line as ssh-keygen writes it. */
const aKey = (comment = 'ada@laptop'): string => `${generateKeyPair().publicKey} ${comment}\n`;
const add = (user: Partial<UserCaller>, public_key = aKey(), name?: string) =>
  fixture.call(sshKeys.add, { public_key, ...(name !== undefined && { name }) }, user);
const list = async (user: Partial<UserCaller>): Promise<SshKey[]> => (await fixture.call(sshKeys.list, {}, user)).data;

describe('the SSH keys of a user', () => {
  it('are added as the file of ssh-keygen has them, listed in that order, renamed and deleted', async () => {
    const user = aUser();
    const line = aKey();
    const first = await add(user, line);
    expect(first).toMatchObject({
      name: 'ada@laptop',
      type: 'ssh-ed25519',
      fingerprint: expect.stringMatching(/^SHA256:[\w+/]{43}$/),
    });
    expect(line.startsWith(`${first.public_key} `)).toBe(true);
    const second = await add(user, aKey(''), 'desktop');
    const third = await add(user, ssh2.utils.generateKeyPairSync('ecdsa', { bits: 256 }).public);
    expect(third.name).toBe('ecdsa-sha2-nistp256');
    expect(await list(user)).toEqual([first, second, third]);
    const { ssh_key_id } = first;
    expect(await fixture.call(sshKeys.get, { ssh_key_id }, user)).toEqual(first);
    const renamed = await fixture.call(sshKeys.rename, { ssh_key_id, name: 'old laptop' }, user);
    expect(renamed).toEqual({ ...first, name: 'old laptop' });
    await fixture.call(sshKeys.remove, { ssh_key_id }, user);
    expect(await list(user)).toEqual([second, third]);
  });

  it('are added by a session of the last 10 minutes, and by a key of any age', async () => {
    const user = aUser();
    const bySession = (minutes: number): Partial<UserCaller> => ({
      ...user,
      credential: { kind: 'session', id: newId(), openedAt: new Date(Date.now() - minutes * 60_000).toISOString() },
    });
    await add(bySession(9));
    const { code, message } = await errorOf(add(bySession(11)));
    expect([code, message]).toEqual(['forbidden', 'This needs a log-in within the last 10 minutes. Log in again.']);
    await add({ ...user, credential: { kind: 'key', id: newId() } });
    expect(await list(bySession(600))).toHaveLength(2);
  });

  it('are added by no key that was replaced, nor by a key or session that has ended', async () => {
    const user = aUser();
    const by = (kind: 'key' | 'session') => ({ ...user, credential: { kind, id: newId() } });
    const [replaced, revoked, loggedOut] = [by('key'), by('key'), by('session')];
    fixture.owner.replacedKeys.add(replaced.credential.id);
    for (const { credential } of [revoked, loggedOut]) fixture.owner.endedCredentials.add(credential.id);
    const refusals = await Promise.all([replaced, revoked, loggedOut].map((caller) => errorOf(add(caller))));
    expect(refusals.map(({ code, message }) => [code, message])).toEqual([
      [
        'forbidden',
        'This key was replaced and is valid only for its grace period: it cannot add an SSH key of its user. Use the new key.',
      ],
      ['unauthenticated', 'The API key was revoked.'],
      ['unauthenticated', 'The session has ended. Log in again.'],
    ]);
    expect(await list(user)).toEqual([]);
    // What gives nothing, a key does until its grace ends.
    const { ssh_key_id } = await add(user);
    await fixture.call(sshKeys.rename, { ssh_key_id, name: 'old laptop' }, replaced);
    await fixture.call(sshKeys.remove, { ssh_key_id }, replaced);
  });

  it.each([
    [
      'session' as const,
      'A team whose pods this key would open requires a second factor. Set up a second factor, or log in with yours.',
    ],
    [
      'key' as const,
      'A team whose pods this SSH key would open requires a second factor, which this API key lacks. ' +
        'Add the SSH key in a session with a second factor, or by an API key that was created in one.',
    ],
  ])('are added by no %s that lacks the second factor of a team which they would open', async (kind, refusal) => {
    const [closed, invitedTo] = [newId(), newId()];
    const user = aUser();
    const lacking = (...teamIds: string[]): Partial<UserCaller> => ({
      ...user,
      credential: { kind, id: newId(), ...(kind === 'session' && { openedAt: new Date().toISOString() }) },
      teams: teamIds.map((teamId) => ({ teamId, role: 'member', lacksSecondFactor: true })),
    });
    const membership = {
      user_id: user.userId,
      role: 'member' as const,
      is_suspended: false,
      requires_second_factor: true,
    };
    fixture.owner.members = [
      { ...membership, team_id: closed, is_invited: false },
      { ...membership, team_id: invitedTo, is_invited: true },
    ];
    const { code, message } = await errorOf(add(lacking(invitedTo, closed)));
    expect([code, message]).toEqual(['forbidden', refusal]);
    await add(lacking(invitedTo));
    expect(await list(user)).toHaveLength(1);
  });

  it('are told to bare metal whole with each change, in the order of the changes', async () => {
    const user = aUser();
    const [one, two] = [await add(user), await add(user)];
    await fixture.call(sshKeys.remove, { ssh_key_id: one.ssh_key_id }, user);
    const told = (await fixture.published<UserKeysChanged>('pods.user_keys_changed')).filter(
      ({ user_id }) => user_id === user.userId,
    );
    expect(told.map(({ revision, keys }) => [revision, keys])).toEqual([
      [1, [one.public_key]],
      [2, [one.public_key, two.public_key]],
      [3, [two.public_key]],
    ]);
  });

  it('are nobody else’s: another user’s key is one that does not exist', async () => {
    const [user, other] = [aUser(), aUser()];
    const { ssh_key_id } = await add(user);
    const missing = newId();
    for (const operation of [sshKeys.get, sshKeys.remove] as const) {
      const refusals = [
        await errorOf(fixture.call(operation, { ssh_key_id }, other)),
        await errorOf(fixture.call(operation, { ssh_key_id: missing }, other)),
      ];
      expect(refusals.map(({ code, message }) => [code, message])).toEqual(
        Array(2).fill(['not_found', 'No such SSH key.']),
      );
    }
    expect((await errorOf(fixture.call(sshKeys.rename, { ssh_key_id, name: 'x' }, other))).code).toBe('not_found');
    expect(await list(other)).toEqual([]);
    expect(await list(user)).toHaveLength(1);
  });

  it('are not for a key to one team', async () => {
    const user: Partial<UserCaller> = { ...aUser(), scope: 'membership' };
    expect((await errorOf(add(user))).code).toBe('forbidden');
    expect((await errorOf(fixture.call(sshKeys.list, {}, user))).code).toBe('forbidden');
  });

  it('are there once for a user, and may be there for two', async () => {
    const [user, other] = [aUser(), aUser()];
    const line = aKey();
    const outcomes = await Promise.allSettled([add(user, line), add(user, line), add(other, line)]);
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect((await errorOf(add(user, line))).code).toBe('conflict');
  });

  it('are a hundred at most, however many are added at once', async () => {
    const user = aUser();
    await fixture.query(
      `INSERT INTO ssh_key (ssh_key_id, user_id, name, type, fingerprint, public_key)
       SELECT gen_random_uuid(), $1, 'key', 'ssh-ed25519', n::text, 'ssh-ed25519 AAAA' FROM generate_series(1, 98) n`,
      [user.userId],
    );
    const outcomes = await Promise.allSettled(Array.from({ length: 6 }, () => add(user)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    expect((await errorOf(add(user))).code).toBe('conflict');
  });

  it('are added 120 times an hour at most, and removed at any time', async () => {
    const user = aUser();
    const first = await add(user);
    await fixture.query('UPDATE ssh_key_owner SET added = 119 WHERE user_id = $1', [user.userId]);
    await add(user);
    const refused = await errorOf(add(user));
    expect(refused).toMatchObject({ code: 'too_many_requests' });
    expect(refused.details.retryAfterSeconds).toBeGreaterThan(3_000);
    await fixture.call(sshKeys.remove, { ssh_key_id: first.ssh_key_id }, user);
    expect((await errorOf(add(user))).code).toBe('too_many_requests');
    await fixture.query(`UPDATE ssh_key_owner SET added_since = now() - interval '61 min' WHERE user_id = $1`, [
      user.userId,
    ]);
    await add(user);
    expect(await fixture.query('SELECT added FROM ssh_key_owner WHERE user_id = $1', [user.userId])).toEqual([
      { added: 1 },
    ]);
  });

  it('are added once for one Idempotency-Key', async () => {
    const user = aUser();
    const input = { public_key: aKey() };
    const once = { key: 'the same', fingerprint: 'f' };
    const first = await fixture.call(sshKeys.add, input, user, once);
    expect(await fixture.call(sshKeys.add, input, user, once)).toEqual(first);
  });

  it.each([
    ['an RSA key of 2048 bits', () => ssh2.utils.generateKeyPairSync('rsa', { bits: 2048 }).public],
    ['a private key', () => generateKeyPair().privateKey],
    ['two keys', () => aKey() + aKey()],
    ['options before the key', () => `command="id" ${aKey()}`],
    ['a type without a key', () => 'ssh-ed25519'],
    ['a key of another type than it says', () => aKey().replace('ssh-ed25519', 'ecdsa-sha2-nistp256')],
    ['bytes that are no key', () => `ssh-ed25519 ${Buffer.from('no key').toString('base64')}`],
  ])('refuses %s, and names the field', async (_what, make) => {
    const refusal = await errorOf(add(aUser(), make()));
    expect(refusal.code).toBe('invalid_input');
    expect(refusal.details.errors).toMatchObject([{ path: 'public_key' }]);
    expect(refusal.message).not.toContain('PRIVATE KEY-----');
  });

  it('are told of when one is added or deleted, and when none is nobody is told', async () => {
    const user = aUser();
    const { ssh_key_id } = await add(user);
    await fixture.call(sshKeys.remove, { ssh_key_id }, user);
    await errorOf(fixture.call(sshKeys.remove, { ssh_key_id }, user));
    expect(changed.filter((id) => id === user.userId)).toHaveLength(2);
  });
});
