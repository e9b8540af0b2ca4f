import { once } from 'node:events';
import { connect, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it, jest } from '@jest/globals';
import { newId } from '@atoll/database';
import { OpenDoorFixture } from './open-door-fixture.js';

let fixture: OpenDoorFixture;
afterEach(() => fixture.stop());

async function logInAndOut(keys: readonly string[]): Promise<string | null> {
  const { client, refusal } = await fixture.logIn(keys);
  const closed = once(client, 'close');
  client.end();
  if (refusal === null) await closed;
  return refusal;
}

it('an agent that offers other keys first locks nobody out, however often it logs in', async () => {
  fixture = await OpenDoorFixture.start({ failuresOfNetwork: 2 });
  const agent = [fixture.key(), fixture.key(), fixture.key(), fixture.key({})];
  for (let made = 0; made < 5; made += 1) expect(await logInAndOut(agent)).toBeNull();
});

it('connections without a log-in count once each, however many keys they tried, and the network is told so', async () => {
  fixture = await OpenDoorFixture.start({ failuresOfNetwork: 2 });
  const [own, foreign] = [fixture.key({}), [fixture.key(), fixture.key(), fixture.key()]];
  await logInAndOut(foreign);
  expect(await logInAndOut([own])).toBeNull();
  await logInAndOut(foreign);
  // The door may hear of the end of a connection after its client does.
  let refusal = null;
  while (refusal === null) refusal = await logInAndOut([own]);
  expect(refusal).toBe('Too many log-ins from your network have failed. Try again in a minute.');
});

it('connections that begin a key exchange and do not log in count too, and not those that say no more than who they are', async () => {
  fixture = await OpenDoorFixture.start({ failuresOfNetwork: 1 });
  for (const [more, count] of [
    [Buffer.alloc(0), 10],
    [Buffer.alloc(16), 4],
  ] as const) {
    expect(await logInAndOut([fixture.key({})])).toBeNull();
    for (let made = 0; made < count; made += 1) {
      const socket = connect({ host: '127.0.0.1', port: fixture.door.port ?? 0 }).on('error', () => undefined);
      socket.write('SSH-2.0-monitor\r\n');
      // The door answers an identification with its key exchange.
      for (let bytes = 0; bytes < 100;) bytes += ((await once(socket, 'data')) as [Buffer])[0].length;
      const closed = once(socket, 'close');
      socket.resume().end(more);
      await closed;
    }
  }
  // The door may hear of the end of a connection after its client does.
  let refusal = null;
  while (refusal === null) refusal = await logInAndOut([fixture.key({})]);
  expect(refusal).toBe('Too many log-ins from your network have failed. Try again in a minute.');
});

it('who has too many connections is told so, which is no failed log-in', async () => {
  fixture = await OpenDoorFixture.start({ failuresOfNetwork: 1, connectionsOfUser: 2 });
  const own = fixture.key({ userId: newId() });
  const open = [await fixture.logIn([own]), await fixture.logIn([own])];
  expect(open.map(({ refusal }) => refusal)).toEqual([null, null]);
  const sentence = 'You have 2 open connections to pods, the maximum. Close one, then try again.';
  for (let made = 0; made < 10; made += 1) expect(await logInAndOut([fixture.key(), own])).toBe(sentence);
  expect(await logInAndOut([fixture.key({})])).toBeNull();
});

it('who logs in too often is told so, and how to log in once; another user of the team comes in, until its team has too many', async () => {
  fixture = await OpenDoorFixture.start({ failuresOfNetwork: 1, logInsOfUser: 2 });
  const [teamId, users] = [newId(), [newId(), newId(), newId(), newId(), newId(), newId()]];
  const keys = users.map((userId) => fixture.key({ userId, teamId }));
  for (const key of keys.slice(0, 5)) {
    for (let made = 0; made < 2; made += 1) expect(await logInAndOut([key])).toBeNull();
  }
  const share = 'Try again later, or share one SSH connection (ControlMaster).';
  for (let made = 0; made < 10; made += 1)
    expect(await logInAndOut(keys.slice(0, 1))).toBe(`You have logged in to pods 2 times in a minute. ${share}`);
  expect(await logInAndOut(keys.slice(5))).toBe(`Your team has logged in to pods 10 times in a minute. ${share}`);
  expect(await logInAndOut([fixture.key({ userId: users[5] ?? '' })])).toBeNull();
});

it('a log-in that cannot be decided is no failed one', async () => {
  fixture = await OpenDoorFixture.start({ failuresOfNetwork: 1 });
  const own = fixture.key({});
  fixture.admissionControl.isDown = true;
  for (let made = 0; made < 10; made += 1)
    expect(await logInAndOut([own])).toBe('All configured authentication methods failed');
  fixture.admissionControl.isDown = false;
  expect(await logInAndOut([own])).toBeNull();
});

it('who leaves before it is decided counts as it is decided then', async () => {
  fixture = await OpenDoorFixture.start({ failuresOfNetwork: 1 });
  const own = fixture.key({});
  const leave = async (count: number) => {
    const decision = Promise.withResolvers<null>();
    const admit = jest.spyOn(fixture.admissionControl, 'admit').mockImplementation(() => {
      fixture.leave();
      return decision.promise;
    });
    for (let made = 0; made < count; made += 1) expect(await logInAndOut([own])).toBe('closed');
    admit.mockRestore();
    return decision;
  };
  (await leave(10)).reject(new Error('the database is away'));
  expect(await logInAndOut([own])).toBeNull();
  (await leave(4)).resolve(null);
  // The door may hear of the end of a connection after its client does.
  let refusal = null;
  while (refusal === null) refusal = await logInAndOut([own]);
  expect(refusal).toBe('Too many log-ins from your network have failed. Try again in a minute.');
});

it('who offers more keys than a connection may try is told what to do', async () => {
  fixture = await OpenDoorFixture.start({ authTries: 2 });
  expect(await logInAndOut([fixture.key(), fixture.key(), fixture.key(), fixture.key({})])).toMatch(
    /^More keys were offered than the 2 that/,
  );
});

/** What ssh2 has of its client and does not show. */
const socketOf = (client: unknown) => (client as { _sock: Socket })._sock;

it('a client that does not answer is gone, though its host keeps the connection', async () => {
  fixture = await OpenDoorFixture.start({ aliveIntervalMs: 50 });
  const { client } = await fixture.logIn([fixture.key({})]);
  socketOf(client).pause();
  while (fixture.trail.ends.length === 0) await delay(10);
  expect(fixture.trail.ends).toEqual(['the client did not answer']);
});

it('a client that breaks the protocol after its log-in is cut, though it keeps the connection', async () => {
  fixture = await OpenDoorFixture.start();
  const { client } = await fixture.logIn([fixture.key({})]);
  const socket = socketOf(client);
  socket.removeAllListeners('end').allowHalfOpen = true;
  socket.write(Buffer.alloc(64, 1));
  while (fixture.trail.ends.length === 0) await delay(10);
});

it('a command that is too long is refused with a sentence', async () => {
  fixture = await OpenDoorFixture.start();
  const { client } = await fixture.logIn([fixture.key({})]);
  const failed = new Promise<string>((resolve) => client.on('error', ({ message }) => resolve(message)));
  client.exec(`echo ${'x'.repeat(60_000)}`, () => undefined);
  expect(await failed).toMatch(/^A packet, such as a command, may have 35000 bytes\. /);
});

it('a client that has nothing to say is asked by TCP whether it is there', async () => {
  fixture = await OpenDoorFixture.start();
  const asks = jest.spyOn(Socket.prototype, 'setKeepAlive');
  await fixture.logIn([fixture.key({})]);
  const asked = (asks.mock.contexts as Socket[]).filter((_, call) => String(asks.mock.calls[call]) === 'true,30000');
  asks.mockRestore();
  expect(asked.map(({ localPort }) => localPort)).toEqual([fixture.door.port]);
});
