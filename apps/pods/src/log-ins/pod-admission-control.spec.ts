import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { teamRoles, type CallerCredential, type TeamRole, type UserCaller } from '@atoll/contracts';
import { sshKeys, type Pod } from '@atoll/contracts/pods';
import { credentialsChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { Rpc } from '@atoll/rpc';
import { fingerprintOf, generateKeyPair, type KeyPair } from '@atoll/ssh';
import ssh2 from 'ssh2';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { AdmissionControl, type Admission } from './admission-control.js';
import { SshHostKey } from '../ssh-door/ssh-host-key.js';
import { SshServer } from '../ssh-door/ssh-server.js';

let fixture: PodsFixture;
let team: ToldTeam;
let pod: Pod;
beforeAll(async () => {
  fixture = await PodsFixture.start({ sshPort: '0' });
  team = await fixture.team();
  pod = await fixture.running(team);
});
afterAll(() => fixture.stop());

interface KeyHolder {
  readonly user: Partial<UserCaller> & { readonly userId: string };
  readonly privateKey: string;
  readonly sshKeyId: string;
  readonly fingerprint: string;
}

/** A user with an SSH key, in a role of the team where one is given. */
async function holder(
  role?: TeamRole,
  {
    is_suspended = false,
    is_invited = false,
    keys = generateKeyPair(),
    credential,
  }: { is_suspended?: boolean; is_invited?: boolean; keys?: KeyPair; credential?: CallerCredential } = {},
): Promise<KeyHolder> {
  const user = { userId: newId(), scope: 'user', ...(credential && { credential }) } as const;
  const { fingerprint, ssh_key_id: sshKeyId } = await fixture.call(sshKeys.add, { public_key: keys.publicKey }, user);
  if (role) fixture.owner.members.push({ user_id: user.userId, team_id: team.team_id, role, is_suspended, is_invited });
  return { user, privateKey: keys.privateKey, sshKeyId, fingerprint };
}

const admissionControl = () => fixture.get(AdmissionControl);
const admit = ({ fingerprint }: { fingerprint: string }, name = pod.pod_name) =>
  admissionControl().admit(name, fingerprint);
const reasons = async (...admissions: (Admission | null)[]) => {
  const found = await admissionControl().revoked(admissions as Admission[]);
  return admissions.map((admission) => found.get(admission as Admission) ?? null);
};

describe('who comes in by SSH', () => {
  it.each(teamRoles)('decides about a %s by what the role may do', async (role) => {
    const admission = await admit(await holder(role));
    expect(admission !== null).toBe(['team_owner', 'team_admin', 'member'].includes(role));
  });

  it('leads to the present run of the pod', async () => {
    const { user, sshKeyId, fingerprint } = await holder('member');
    expect(await admit({ fingerprint })).toEqual({
      credential: null,
      podId: pod.pod_id,
      podName: pod.pod_name,
      teamId: team.team_id,
      userId: user.userId,
      sshKeyId,
      fingerprint,
      run: { ref: { kind: 'pod', id: pod.pod_id, run: 1 }, driver: expect.anything() },
    });
  });

  it('refuses unknown keys, members of other teams and of suspended ones, who has not accepted an invitation, and who asks for a pod that is not there, all by the same question', async () => {
    const elsewhere = await holder();
    fixture.owner.members.push({
      user_id: elsewhere.user.userId,
      team_id: newId(),
      role: 'team_owner',
      is_suspended: false,
    });
    const refused: Parameters<typeof admit>[] = [
      [{ fingerprint: fingerprintOf(Buffer.from('unknown')) }],
      [await holder()],
      [elsewhere],
      [await holder('member', { is_suspended: true })],
      [await holder('team_owner', { is_invited: true })],
      [await holder('member'), 'no-such-pod'],
    ];
    for (const attempt of refused) {
      fixture.owner.asked.length = 0;
      expect(await admit(...attempt)).toBeNull();
      expect(fixture.owner.asked).toEqual(['teams.directory.roles']);
    }
  });

  it('leads to no pod that was deleted, by a key or by a terminal', async () => {
    const pod_name = `gone-${newId()}`;
    await fixture.query(
      `INSERT INTO pod SELECT gone.* FROM pod, jsonb_populate_record(pod,
         jsonb_build_object('pod_id', gen_random_uuid(), 'pod_name', $2::text, 'state', 'deleted', 'due_at', NULL)) gone WHERE pod.pod_id = $1`,
      [pod.pod_id, pod_name],
    );
    const { user, fingerprint } = await holder('member');
    const session = { kind: 'session', id: newId() } as const;
    expect(await admit({ fingerprint }, pod_name)).toBeNull();
    expect(await admissionControl().admitUser(pod_name, user.userId, session)).toBeNull();
    expect(await admissionControl().admitUser(pod.pod_name, user.userId, session)).not.toBeNull();
  });

  it('refuses keys that were added without a second factor where the team required one when their user joined, for as long as it requires one', async () => {
    const session = { kind: 'session', id: newId(), openedAt: new Date().toISOString() } as const;
    fixture.owner.withoutSecondFactor.add(session.id);
    const [lacking, complete] = [await holder('member', { credential: session }), await holder('member')];
    const admits = async (requires_second_factor: boolean, required_factor_at_join?: boolean) => {
      const strict = {
        requires_second_factor,
        ...(required_factor_at_join !== undefined && { required_factor_at_join }),
      };
      fixture.owner.members = fixture.owner.members.map((member) => ({ ...member, ...strict }));
      expect(await admit(complete)).not.toBeNull();
      return (await admit(lacking)) !== null;
    };
    expect([
      await admits(true),
      await admits(true, true),
      await admits(true, false),
      await admits(false, true),
    ]).toEqual([true, false, true, true]);
    const [leaves, stays] = [await admit(lacking), await admit(complete)];
    await admits(true, true);
    expect(await reasons(leaves, stays)).toEqual([
      expect.stringContaining('your SSH key was added without one. Remove the key, and add it again'),
      null,
    ]);
    await admits(false);
  });

  it('lets in whichever holder of a key may come in, where two users have the same', async () => {
    const keys = generateKeyPair();
    const [first, second] = [await holder(undefined, { keys }), await holder('member', { keys })];
    expect(first.fingerprint).toBe(second.fingerprint);
    expect((await admit(first))?.userId).toBe(second.user.userId);
  });

  it('lets in the member who has a key that 1,000 others have added before', async () => {
    const keys = generateKeyPair();
    const others = await holder(undefined, { keys });
    await fixture.query(
      `INSERT INTO ssh_key (ssh_key_id, user_id, name, type, fingerprint, public_key, created_at)
       SELECT gen_random_uuid(), gen_random_uuid(), name, type, fingerprint, public_key, created_at
       FROM ssh_key, generate_series(1, 999) WHERE ssh_key_id = $1`,
      [others.sshKeyId],
    );
    // Their invitations, or memberships that ended, are known too.
    await fixture.query(
      'INSERT INTO member_role (team_id, user_id, role, revision) SELECT $1, user_id, NULL, 1 FROM ssh_key WHERE fingerprint = $2',
      [team.team_id, others.fingerprint],
    );
    const member = await holder('member', { keys });
    await fixture.query(`INSERT INTO member_role (team_id, user_id, role, revision) VALUES ($1, $2, 'member', 1)`, [
      team.team_id,
      member.user.userId,
    ]);
    expect((await admit(member))?.userId).toBe(member.user.userId);
  });

  it('lets in who has accepted the invitation meanwhile', async () => {
    const invitee = await holder('member', { is_invited: true });
    expect(await admit(invitee)).toBeNull();
    fixture.owner.members = fixture.owner.members.map((member) => ({ ...member, is_invited: false }));
    expect(await admit(invitee)).not.toBeNull();
  });

  it('lets nobody in while nobody can say who is a member', async () => {
    const member = await holder('member');
    fixture.owner.leave();
    await expect(admit(member)).rejects.toThrow();
    fixture.owner.comeBack();
    expect(await admit(member)).not.toBeNull();
  });
});

describe('who stays', () => {
  it('is told why not: the key is gone, the role, the membership, its acceptance, the run', async () => {
    const other = await fixture.running(team);
    const [noKey, noRole, noMember, invitedAnew, noRun, well] = [
      await holder('member'),
      await holder('member'),
      await holder('member'),
      await holder('member'),
      await holder('member'),
      await holder('member'),
    ];
    const admissions = [
      await admit(noKey),
      await admit(noRole),
      await admit(noMember),
      await admit(invitedAnew),
      await admit(noRun, other.pod_name),
      await admit(well),
    ];
    expect(await reasons(...admissions)).toEqual([null, null, null, null, null, null]);
    await fixture.call(sshKeys.remove, { ssh_key_id: noKey.sshKeyId }, noKey.user);
    fixture.owner.members = fixture.owner.members.flatMap((member) => {
      if (member.user_id === noMember.user.userId) return [];
      if (member.user_id === invitedAnew.user.userId) return [{ ...member, is_invited: true }];
      return [member.user_id === noRole.user.userId ? { ...member, role: 'viewer' as const } : member];
    });
    await fixture.act(other, 'stop', team);
    await fixture.until(other, 'stopped');
    expect(await reasons(...admissions)).toEqual([
      'Your SSH key was removed.',
      'You may no longer use the pods of this team.',
      'You may no longer use the pods of this team.',
      'Your SSH key opens the pods of this team once you have accepted its invitation.',
      `The pod ${other.pod_name} has stopped or restarted.`,
      null,
    ]);
    expect((await admit(noRun, other.pod_name))?.run).toBeNull();
    await fixture.act(other, 'start', team);
    await fixture.until(other, 'running');
    expect((await reasons(...admissions))[4]).toBe(`The pod ${other.pod_name} has stopped or restarted.`);
  });
});

describe('who is in two teams', () => {
  it('stays in the pods of one after the end in the other', async () => {
    const { user, fingerprint } = await holder('member');
    const here = await admit({ fingerprint });
    const there = { ...here!, teamId: newId() };
    const membership = { user_id: user.userId, role: 'member', is_suspended: false } as const;
    fixture.owner.members.push({ ...membership, team_id: there.teamId });
    expect(await reasons(here, there)).toEqual([null, null]);
    fixture.owner.members = fixture.owner.members.filter(
      ({ user_id, team_id }) => user_id !== user.userId || team_id !== team.team_id,
    );
    expect(await reasons(here, there)).toEqual(['You may no longer use the pods of this team.', null]);
  });
});

describe('any number of open connections', () => {
  it('are looked at, however many there are', async () => {
    const [removed, well] = [await holder('member'), await holder('member')];
    const [leaves, stays] = [await admit(removed), await admit(well)];
    fixture.owner.members = fixture.owner.members.filter(({ user_id }) => user_id !== removed.user.userId);
    const crowd = Array.from({ length: 1_500 }, () => ({ ...stays! }));
    expect([...(await fixture.get(AdmissionControl).revoked([...crowd, leaves!])).keys()]).toEqual([leaves]);
  });
});

describe('the host key', () => {
  it('is one for all replicas that start at once, and lies sealed in the database', async () => {
    await fixture.query('DELETE FROM ssh_host_key');
    const keys = await Promise.all(Array.from({ length: 5 }, () => fixture.get(SshHostKey).read()));
    expect(new Set(keys).size).toBe(1);
    expect(keys[0]).toContain('OPENSSH PRIVATE KEY');
    const [row] = await fixture.query<{ sealed: string }>('SELECT sealed FROM ssh_host_key');
    expect(row?.sealed).toMatch(/^v1\./);
    expect(row?.sealed).not.toContain('PRIVATE');
  });
});

describe('an open connection', () => {
  const logIn = async ({ privateKey }: KeyHolder): Promise<ssh2.Client> => {
    const client = new ssh2.Client().on('error', () => undefined);
    client.connect({ host: '127.0.0.1', port: fixture.get(SshServer).port ?? 0, username: pod.pod_name, privateKey });
    await once(client, 'ready');
    return client;
  };
  const logIns = ({ user }: KeyHolder) =>
    fixture.query<{ end_reason: string | null; address: string; is_over: boolean }>(
      'SELECT end_reason, address, ended_at >= began_at AS is_over FROM ssh_log_in WHERE user_id = $1',
      [user.userId],
    );

  it('ends as soon as its key is deleted, and the audit says why', async () => {
    const member = await holder('member');
    const client = await logIn(member);
    const closed = once(client, 'close');
    await fixture.call(sshKeys.remove, { ssh_key_id: member.sshKeyId }, member.user);
    await closed;
    for (;;) {
      const [entry] = await logIns(member);
      if (entry?.is_over) {
        expect(entry).toEqual({ end_reason: 'Your SSH key was removed.', address: '127.0.0.1', is_over: true });
        break;
      }
    }
  });

  it('ends as soon as the teams service tells that its user is no member any more, and others stay', async () => {
    const [leaver, stayer] = [await holder('member'), await holder('member')];
    const [client, other] = [await logIn(leaver), await logIn(stayer)];
    // Who is let in is noted beside what the client does.
    while ((await logIns(stayer)).length === 0);
    fixture.owner.members = fixture.owner.members.filter(({ user_id }) => user_id !== leaver.user.userId);
    const closed = once(client, 'close');
    fixture.get(Rpc).publish(credentialsChanged, { user_id: leaver.user.userId });
    await closed;
    expect(await logIns(stayer)).toMatchObject([{ end_reason: null }]);
    other.end();
  });
});
