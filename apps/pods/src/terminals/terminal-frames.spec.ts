import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { ClusterDriver, TerminalSize } from '@atoll/cluster';
import { Sealer } from '@atoll/seal';
import type { Admission } from '../log-ins/admission-control.js';
import type { ConnectionRegistry } from '../log-ins/connection-registry.js';
import { ShellUnderTest } from './shell-fixture.js';
import { TerminalDoor } from './terminal-door.js';
import { TerminalTickets } from './terminal-tickets.js';

/** What a turn of the event loop may take for terminals is 20 of these. */
const frameMs = 0.1;

class BusyShell extends ShellUnderTest {
  override resize(size: TerminalSize): Promise<void> {
    const endMs = performance.now() + frameMs;
    while (performance.now() < endMs);
    return super.resize(size);
  }
}

const tickets = new TerminalTickets(new Sealer('k1:MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE='));
let openShell: ClusterDriver['openShell'];
let door: TerminalDoor;
let browser: Socket;
beforeEach(async () => {
  const registry = { refusalOf: () => null, register: () => Promise.resolve() };
  door = new TerminalDoor({
    host: '127.0.0.1',
    tickets,
    registry: registry as unknown as ConnectionRegistry,
    isStillAdmitted: () => Promise.resolve(true),
  });
  await door.open();
});
afterEach(async () => {
  jest.restoreAllMocks();
  browser.destroy();
  await door.close();
});

async function openTerminal(): Promise<void> {
  const driver = { openShell: (...asked) => openShell(...asked) } as ClusterDriver;
  const admission = { podName: 'train-1', run: { ref: { id: '1', run: 1 }, driver } } as unknown as Admission;
  const { ticket } = tickets.make({ admission, size: { columns: 80, rows: 24 } }, door.place);
  browser = connect(door.place.port, '127.0.0.1');
  const head = [
    'GET /train-1 HTTP/1.1',
    'host: pods',
    'connection: Upgrade',
    'upgrade: websocket',
    `sec-websocket-protocol: atoll.v1, ${ticket}`,
    'sec-websocket-version: 13',
    'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
  ];
  browser.write(`${head.join('\r\n')}\r\n\r\n`);
  const [answer] = (await once(browser, 'data')) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 101 /);
}

/** As a browser sends it, with a mask of zeros. */
function frame(opcode: number, data: Buffer): Buffer {
  const length = Buffer.alloc(3);
  length.writeUInt8(0x80 | 126);
  length.writeUInt16BE(data.length, 1);
  return Buffer.concat([Buffer.of(0x80 | opcode), length, Buffer.alloc(4), data]);
}

const [text, binary] = [1, 2];
const many = (count: number, one: Buffer): Buffer => Buffer.concat(Array.from({ length: count }, () => one));

it('however many frames come at once, other work has a turn after some of them', async () => {
  const shell = new BusyShell({ command: null, terminal: null, env: new Map() });
  openShell = () => Promise.resolve(shell);
  await openTerminal();
  const resize = frame(text, Buffer.from('{"columns":9,"rows":9}'));
  while (shell.sizes.length === 0) {
    browser.write(resize);
    await nextTurn();
  }
  while (browser.writableLength > 0) await nextTurn();
  let [seen, most] = [shell.sizes.length, 0];
  const all = seen + 600;
  browser.write(many(600, resize));
  while (seen < all) {
    await nextTurn();
    most = Math.max(most, shell.sizes.length - seen);
    seen = shell.sizes.length;
  }
  expect(most).toBeLessThan(100);
});

it('frames that say nothing are not kept for a shell that does not read, and the others are, in their order', async () => {
  const shell = new ShellUnderTest({ command: null, terminal: null, env: new Map() });
  const opening = Promise.withResolvers<ShellUnderTest>();
  openShell = () => opening.promise;
  const warnings: string[] = [];
  const warned = (warning: Error): void => void warnings.push(warning.name);
  process.on('warning', warned);
  const write = jest.spyOn(PassThrough.prototype, 'write');
  await openTerminal();
  const sizes = (): number[] => write.mock.calls.map(([chunk]) => (chunk as Buffer).length);
  const full = frame(binary, Buffer.alloc(65_535, 'a'));
  browser.write(
    Buffer.concat([full, many(2_000, frame(binary, Buffer.alloc(0))), many(50, frame(binary, Buffer.of(98)))]),
  );
  while (sizes().length < 51) await nextTurn();
  expect(sizes()).toEqual([65_535, ...Array<number>(50).fill(1)]);
  let typed = '';
  shell.stdin.removeAllListeners('data');
  opening.resolve(shell);
  for await (const chunk of shell.stdin) if ((typed += String(chunk)).length === 65_585) break;
  expect(typed).toBe(`${'a'.repeat(65_535)}${'b'.repeat(50)}`);
  process.off('warning', warned);
  expect(warnings).toEqual([]);
});
