import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { ClusterDriver, Shell, ShellRequest, TerminalSize } from '@atoll/cluster';
import type { Client, ClientChannel } from 'ssh2';
import { OpenDoorFixture } from './open-door-fixture.js';

/** What ssh2 has of a client's channel, and does not show. */
interface Inside {
  readonly outgoing: { readonly id: number };
  /** Of requests that wait for an answer, in their order: whether it was refused. */
  readonly _callbacks: ((isRefused: boolean | undefined) => void)[];
  readonly _client: { readonly _protocol: Record<Kind, (id: number, ...asked: unknown[]) => void> };
}
type Kind = 'shell' | 'exec' | 'subsystem' | 'pty' | 'env' | 'openssh_agentForward';

let fixture: OpenDoorFixture;
let client: Client;
let opened: number;
/** Of terminals, in the order in which the pod was told of them. */
let sizes: (readonly [columns: number, rows: number])[];
beforeEach(async () => {
  fixture = await OpenDoorFixture.start();
  [opened, sizes] = [0, []];
  const openShell = (_ref: unknown, { terminal }: ShellRequest) => {
    if (terminal) note(terminal);
    return Promise.resolve(echo());
  };
  const driver = { openShell } as unknown as ClusterDriver;
  const run = { driver, ref: { kind: 'pod', id: 'p1', run: 1 } as const };
  ({ client } = await fixture.logIn([fixture.key({ run })]));
});
afterEach(() => fixture.stop());

const note = ({ columns, rows }: TerminalSize): void => void sizes.push([columns, rows]);

/** A process that writes what it reads, and ends with its input. */
function echo(): Shell {
  opened += 1;
  const [through, stderr] = [new PassThrough(), new PassThrough()];
  stderr.end();
  const gesture = () => Promise.resolve();
  const resize = (size: TerminalSize) => Promise.resolve(note(size));
  const exit = once(through, 'end').then(() => ({ code: 0 }));
  return { stdin: through, stdout: through, stderr, exit, resize, signal: gesture, close: gesture };
}

const exec = () =>
  new Promise<ClientChannel>((resolve, reject) =>
    client.exec('cat', (error, channel) => (error ? reject(error) : resolve(channel))),
  );

/** Asks for another program on a channel that has one, as no well-behaved client does. */
function ask(channel: ClientChannel, kind: Kind, ...asked: unknown[]): Promise<boolean> {
  const { outgoing, _callbacks: waiting, _client } = channel as unknown as Inside;
  return new Promise((resolve) => {
    waiting.push((isRefused) => resolve(isRefused === true));
    _client._protocol[kind](outgoing.id, ...asked, true);
  });
}

it.each([
  ['shell'],
  ['exec', 'true'],
  ['subsystem', 'sftp'],
  ['subsystem', 'netconf'],
  ['pty', 24, 80, 0, 0, 'xterm', null],
  ['env', 'LANG', 'C'],
  ['openssh_agentForward'],
] as const)('refuses %s after the program has started; all sessions go on', async (kind, ...asked) => {
  const sessions = [await exec(), await exec()] as const;
  expect(await ask(sessions[0], kind, ...asked)).toBe(true);
  for (const session of sessions) session.end('still here');
  expect(await Promise.all(sessions.map(text))).toEqual(['still here', 'still here']);
  expect(opened).toBe(2);
});

it('a length of 0, as from a client without a terminal of its own, changes nothing: a terminal has 80 columns and 24 rows', async () => {
  const channel = await new Promise<ClientChannel>((resolve, reject) =>
    client.exec('cat', { pty: { cols: 0, rows: 0 } }, (error, opened) => (error ? reject(error) : resolve(opened))),
  );
  channel.setWindow(40, 0, 0, 0);
  channel.setWindow(0, 132, 0, 0);
  channel.end('over');
  expect(await text(channel)).toBe('over');
  // Changes that come while the shell is opened are told as one.
  expect([sizes.at(0), sizes.at(-1)]).toEqual([
    [80, 24],
    [132, 40],
  ]);
});
