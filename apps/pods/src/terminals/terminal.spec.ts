import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { teamRoles, type TeamRole, type UserCaller } from '@atoll/contracts';
import { terminals, type Pod, type TerminalTicket } from '@atoll/contracts/pods';
import { credentialsChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { Rpc, systemContext } from '@atoll/rpc';
import { Sealer } from '@atoll/seal';
import { WebSocket } from 'ws';
import { Clusters } from '../cluster/clusters.js';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { OpenConnections } from '../log-ins/open-connections.js';
import { Browser } from './browser-fixture.js';
import { openShellsUnderTest, type ShellUnderTest } from './shell-fixture.js';
import { TerminalsService } from './terminal.service.js';

let fixture: PodsFixture;
let team: ToldTeam;
let pod: Pod;
let shells: ShellUnderTest[];
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 8);
  pod = await fixture.running(team);
  shells = openShellsUnderTest(await fixture.get(Clusters).driverOf('1'));
});
afterAll(() => fixture.stop());

const size = { columns: 120, rows: 40 };
type Member = Partial<UserCaller> & { readonly userId: string };

function member(role: TeamRole = 'member', is_suspended = false, team_id = team.team_id): Member {
  const userId = newId();
  fixture.owner.members.push({ user_id: userId, team_id, role, is_suspended });
  return { userId, scope: 'user', teams: [{ teamId: team_id, role }] };
}

const open = (who: Partial<UserCaller>, pod_name = pod.pod_name): Promise<TerminalTicket> =>
  fixture.call(terminals.open, { pod_name, ...size }, who);

const locate = (ticket: string, pod_name = pod.pod_name) =>
  fixture.get(Rpc).call(terminals.locate, { pod_name, ticket }, systemContext('gateway'));

/** As a gateway connects to the replica. */
async function dial(ticket: string, pod_name = pod.pod_name): Promise<WebSocket> {
  const { host, port } = await locate(ticket, pod_name);
  const headers = { 'x-forwarded-for': '192.0.2.7' };
  return new WebSocket(`ws://${host}:${port}/${pod_name}`, ['atoll.v1', ticket], { headers });
}

async function terminalOf(
  who: Partial<UserCaller>,
  name = pod.pod_name,
): Promise<{ browser: Browser; shell: ShellUnderTest }> {
  const before = shells.length;
  const socket = await dial((await open(who, name)).ticket, name);
  const browser = new Browser(socket);
  await once(socket, 'open');
  expect(socket.protocol).toBe('atoll.v1');
  while (shells.length === before) await delay(5);
  return { browser, shell: shells[before]! };
}

const trailOf = ({ userId }: Member) =>
  fixture.query<{ address: string; fingerprint: string | null; end_reason: string | null }>(
    'SELECT address, fingerprint, end_reason FROM ssh_log_in WHERE user_id = $1',
    [userId],
  );
async function trailEnds(who: Member): Promise<Awaited<ReturnType<typeof trailOf>>[0]> {
  for (;;) {
    const [entry] = await trailOf(who);
    if (entry?.end_reason) return entry;
    await delay(5);
  }
}

describe('who gets a ticket to a terminal', () => {
  it.each(teamRoles)('decides about a %s by what the role may do', async (role) => {
    const asked = open(member(role));
    if (['team_owner', 'team_admin', 'member'].includes(role)) expect((await asked).ticket).toMatch(/^v1\./);
    else expect((await errorOf(asked)).code).toBe('forbidden');
  });

  it('gives one to who has not accepted an invitation: the caller may use the pods by the API', async () => {
    const invited = member();
    fixture.owner.members = fixture.owner.members.map((one) =>
      one.user_id === invited.userId ? { ...one, is_invited: true } : one,
    );
    const { browser } = await terminalOf(invited);
    await fixture.get(OpenConnections).look(invited.userId);
    browser.socket.send(Buffer.from('exit 0'));
    expect(await browser.closed).toBe('1000 The shell ended with code 0.');
  });

  it('answers another team’s caller as if there were no such pod', async () => {
    const stranger = member('team_owner', false, newId());
    const [foreign, unknown] = [await errorOf(open(stranger)), await errorOf(open(stranger, 'no-such-pod'))];
    expect(foreign.code).toBe('not_found');
    expect(foreign.message).toBe(unknown.message);
  });

  it('asks for the role anew: who was removed a moment ago, and a member of a suspended team, get none', async () => {
    const removed = member();
    fixture.owner.members = fixture.owner.members.filter(({ user_id }) => user_id !== removed.userId);
    expect((await errorOf(open(removed))).code).toBe('forbidden');
    expect((await errorOf(open(member('member', true)))).code).toBe('forbidden');
    expect((await errorOf(open({ userId: newId(), platformAdmin: true, scope: 'user', teams: [] }))).code).toBe(
      'forbidden',
    );
  });

  it('refuses a pod that does not run, and a size that is none', async () => {
    const other = await fixture.running(team, { name: 'stopped' });
    await fixture.act(other, 'stop', team);
    await fixture.until(other, 'stopped');
    expect((await errorOf(open(member(), other.pod_name))).code).toBe('conflict');
    expect(
      (await errorOf(fixture.call(terminals.open, { pod_name: pod.pod_name, columns: 0, rows: 40 }, member()))).code,
    ).toBe('invalid_input');
  });
});

describe('a ticket', () => {
  const refusal = async (ticket: string, name = pod.pod_name) => (await errorOf(locate(ticket, name))).code;

  it('lives 30 s, leads to its replica, and names nothing that its holder can read', async () => {
    const { ticket, expires_at } = await open(member());
    expect(Date.parse(expires_at) - Date.now()).toBeLessThanOrEqual(30_000);
    expect(await locate(ticket)).toEqual({ host: '127.0.0.1', port: expect.any(Number) });
    expect(Buffer.from(ticket.split('.')[2] ?? '', 'base64url').toString('latin1')).not.toContain('127.0.0.1');
  });

  it('is refused when it is forged, altered, of another pod or of another purpose', async () => {
    const { ticket } = await open(member());
    const altered = ticket.slice(0, -2) + (ticket.endsWith('AA') ? 'BB' : 'AA');
    expect(await refusal(altered)).toBe('unauthenticated');
    expect(await refusal(new Sealer(Sealer.createKeys()).seal('{}', 'pods.terminal-ticket'))).toBe('unauthenticated');
    expect(await refusal(fixture.get(Sealer).seal('{}', 'pods.ssh-host-key'))).toBe('unauthenticated');
    expect(await refusal(ticket, 'other-pod')).toBe('unauthenticated');
  });
});

describe('a terminal', () => {
  it('passes bytes both ways, in the size that was asked for and in each that follows, and closes with the shell', async () => {
    const who = member();
    const { browser, shell } = await terminalOf(who);
    expect(shell.request).toMatchObject({ command: null, terminal: { ...size, type: 'xterm-256color' } });
    browser.socket.send(Buffer.from('größe\r'));
    await browser.reads('> größe\r');
    browser.socket.send(JSON.stringify({ columns: 80, rows: 24 }));
    while (shell.sizes.length < 2) await delay(5);
    expect(shell.sizes.at(-1)).toEqual({ columns: 80, rows: 24 });
    browser.socket.send(Buffer.from('exit 3'));
    expect(await browser.closed).toBe('1000 The shell ended with code 3.');
    expect(await trailEnds(who)).toEqual({
      address: '192.0.2.7',
      fingerprint: null,
      end_reason: 'The shell ended with code 3.',
    });
    expect(shell.isClosed).toBe(true);
  });

  it('is opened by a ticket once, and by nothing else', async () => {
    const { ticket } = await open(member());
    const first = await dial(ticket);
    await once(first, 'open');
    const again = await dial(ticket);
    await expect(once(again, 'open')).rejects.toThrow('401');
    const { host, port } = await locate((await open(member())).ticket);
    const bare = new WebSocket(`ws://${host}:${port}/${pod.pod_name}`, ['atoll.v1']);
    await expect(once(bare, 'open')).rejects.toThrow('401');
    const plain = connect(port, host);
    plain.write(`GET /${pod.pod_name} HTTP/1.1\r\nhost: x\r\n\r\n`);
    plain.resume();
    await once(plain, 'close');
    first.close();
  });

  it.each<[string, (one: { is_suspended?: boolean; role: TeamRole }) => object | null]>([
    ['the team was suspended', (one) => ({ ...one, is_suspended: true })],
    ['the role was changed', (one) => ({ ...one, role: 'viewer' })],
    ['the member was removed', () => null],
  ])('is not opened by a ticket that was made before %s', async (_what, change) => {
    const who = member();
    const { ticket } = await open(who);
    const after = (one: (typeof fixture.owner.members)[0]) => (change(one) as typeof one | null) ?? [];
    fixture.owner.members = fixture.owner.members.flatMap((one) => (one.user_id === who.userId ? after(one) : one));
    const before = shells.length;
    expect(await new Browser(await dial(ticket)).closed).toMatch(/^1008 You may no longer /);
    expect(shells).toHaveLength(before);
  });

  it('closes what it cannot read with a word', async () => {
    const { browser } = await terminalOf(member());
    browser.socket.send('{"columns": 0, "rows": 5}');
    expect(await browser.closed).toMatch(/^1003 A text frame must be/);
    const { browser: large } = await terminalOf(member());
    large.socket.send(Buffer.alloc(64 * 1024 + 1));
    expect(await large.closed).toMatch(/^1009/);
  });

  it('holds up its own shell alone where its browser does not read, and goes on when it does', async () => {
    const { browser, shell } = await terminalOf(member());
    browser.socket.send(Buffer.from('flood'));
    await browser.reads('y');
    browser.socket.pause();
    // What the buffers of sockets and streams take is written; then nothing more.
    for (let before = -1; before !== shell.written; await delay(300)) before = shell.written;
    expect(shell.written).toBeLessThan(64 * 1024 * 1024);
    const { browser: other } = await terminalOf(member());
    other.socket.send(Buffer.from('hello'));
    await other.reads('> hello');
    const held = shell.written;
    browser.socket.resume();
    while (shell.written === held) await delay(5);
    browser.socket.terminate();
    while (!shell.isClosed) await delay(5);
    other.socket.close();
  });

  it('ends at once for a member who is removed, and stays for others', async () => {
    const [leaver, stayer] = [member(), member()];
    const [left, stays] = [await terminalOf(leaver), await terminalOf(stayer)];
    fixture.owner.members = fixture.owner.members.filter(({ user_id }) => user_id !== leaver.userId);
    fixture.get(Rpc).publish(credentialsChanged, { user_id: leaver.userId });
    expect(await left.browser.closed).toBe('1008 You may no longer use the pods of this team.');
    expect((await trailEnds(leaver)).end_reason).toBe('You may no longer use the pods of this team.');
    expect(left.shell.isClosed).toBe(true);
    stays.browser.socket.send(Buffer.from('still here'));
    await stays.browser.reads('> still here');
    stays.browser.socket.close();
  });

  it.each(['key', 'session'] as const)(
    'ends at once with the %s that opened it, and no other of the same user with it',
    async (kind) => {
      const who = member();
      const [ending, staying] = [newId(), newId()].map((id) => ({ ...who, credential: { kind, id } }));
      const [ends, stays] = [await terminalOf(ending!), await terminalOf(staying!)];
      fixture.owner.endedCredentials.add(ending!.credential.id);
      fixture.get(Rpc).publish(credentialsChanged, { user_id: who.userId });
      expect(await ends.browser.closed).toMatch(/^1008 The (?:API key|session) that opened this terminal has /);
      while (!ends.shell.isClosed) await delay(5);
      stays.browser.socket.send(Buffer.from('still here'));
      await stays.browser.reads('> still here');
      stays.browser.socket.close();
    },
  );

  it('ends at once where the team begins to require a second factor and its session has none', async () => {
    const session = (who: Member) => ({ ...who, credential: { kind: 'session', id: newId() } as const });
    const [without, other] = [session(member()), session(member())];
    fixture.owner.withoutSecondFactor.add(without.credential.id);
    const [ends, stays] = [await terminalOf(without), await terminalOf(other)];
    await fixture.get(OpenConnections).look(without.userId);
    ends.browser.socket.send(Buffer.from('still here'));
    await ends.browser.reads('> still here');
    fixture.owner.members = fixture.owner.members.map((one) => ({ ...one, requires_second_factor: true }));
    fixture.get(Rpc).publish(credentialsChanged, { user_id: without.userId });
    expect(await ends.browser.closed).toBe('1008 This team requires a second factor. Add one, or log in with it.');
    while (!ends.shell.isClosed) await delay(5);
    await fixture.get(OpenConnections).look(other.userId);
    stays.browser.socket.send(Buffer.from('still here'));
    await stays.browser.reads('> still here');
    stays.browser.socket.close();
  });

  it('ends at once where the team begins to require a second factor and is closed to the API key that opened it', async () => {
    const key = (who: Member) => ({ ...who, credential: { kind: 'key', id: newId() } as const });
    const [invited, ofTeam] = [key(member()), key(member())];
    fixture.owner.wholeKeys.add(invited.credential.id);
    const [ends, stays] = [await terminalOf(invited), await terminalOf(ofTeam)];
    fixture.owner.members = fixture.owner.members.map((one) => ({
      ...one,
      is_invited: true,
      requires_second_factor: true,
      required_factor_at_join: true,
    }));
    fixture.get(Rpc).publish(credentialsChanged, { user_id: invited.userId });
    expect(await ends.browser.closed).toBe(
      '1008 This team requires a second factor, which the API key that opened this terminal lacks.',
    );
    while (!ends.shell.isClosed) await delay(5);
    await fixture.get(OpenConnections).look(ofTeam.userId);
    stays.browser.socket.send(Buffer.from('still here'));
    await stays.browser.reads('> still here');
    stays.browser.socket.close();
    fixture.owner.members = fixture.owner.members.map((one) => ({
      ...one,
      is_invited: false,
      requires_second_factor: false,
    }));
  });

  it('ends within 5 s where nothing tells that its session has ended', async () => {
    const who = { ...member(), credential: { kind: 'session', id: newId() } as const };
    const { browser } = await terminalOf(who);
    fixture.owner.endedCredentials.add(who.credential.id);
    expect(await browser.closed).toMatch(/^1008 The session that opened this terminal has ended/);
  });

  it('does not last where its session ended between the ticket and its use', async () => {
    const who = { ...member(), credential: { kind: 'session', id: newId() } as const };
    const { ticket } = await open(who);
    fixture.owner.endedCredentials.add(who.credential.id);
    expect(await new Browser(await dial(ticket)).closed).toMatch(
      /^1008 The session that opened this terminal has ended/,
    );
  });

  it('stays while it cannot be asked whether its session lives', async () => {
    const who = { ...member(), credential: { kind: 'session', id: newId() } as const };
    const { browser } = await terminalOf(who);
    fixture.owner.leave();
    await fixture.get(OpenConnections).look(who.userId);
    fixture.owner.comeBack();
    browser.socket.send(Buffer.from('still here'));
    await browser.reads('> still here');
  });

  it('ends where the connection to the pod is lost, and its shell ends with a browser that goes away', async () => {
    const { browser, shell } = await terminalOf(member());
    shell.finish(null);
    expect(await browser.closed).toBe('1011 The connection to the pod was lost.');
    const who = member();
    const gone = await terminalOf(who);
    gone.browser.socket.terminate();
    expect((await trailEnds(who)).end_reason).toBe('the client left');
    expect(gone.shell.isClosed).toBe(true);
  });

  it('says that the platform restarts where its replica stops', async () => {
    const who = member();
    const { browser, shell } = await terminalOf(who);
    await fixture.get(TerminalsService).onModuleDestroy();
    expect(await browser.closed).toBe('1012 The platform restarts here. Open the terminal again.');
    expect((await trailEnds(who)).end_reason).toMatch(/restarts here/);
    expect(shell.isClosed).toBe(true);
    await fixture.get(TerminalsService).onApplicationBootstrap();
  });
});
