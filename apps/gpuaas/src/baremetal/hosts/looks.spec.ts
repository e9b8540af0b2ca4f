import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { HostRef } from './host-driver.js';
import { codeOf } from './host-driver-contract-fixture.js';
import { SshHosts } from './ssh-hosts.js';

const stops: (() => void)[] = [];
afterEach(() => stops.splice(0).forEach((stop) => stop()));

/** A host that notes each connection in `visits`, and cuts it: at once, or where it `holds` when it is let go. */
async function startHost(name: string, visits: string[], { holds = false } = {}) {
  const sockets: Socket[] = [];
  const letGo = () => sockets.splice(0).forEach((socket) => socket.destroy());
  const server = createServer((socket) => {
    visits.push(name);
    sockets.push(socket.on('error', () => undefined));
    if (!holds) letGo();
  });
  stops.push(() => {
    letGo();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const host: HostRef = {
    nodeId: '1',
    name,
    driver: 'ssh',
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    user: 'root',
    credential: { password: 'operator' },
    hostKey: null,
  };
  return { host, letGo, isVisited: once(server, 'connection') };
}

/** Looks have one of two connections. */
const newHosts = () => new SshHosts({ allowLoopback: true, connectMs: 60_000, maxConnections: 2, waitMs: 60_000 });
let context: { signal: AbortSignal };
beforeEach(() => {
  context = { signal: AbortSignal.timeout(60_000) };
});

it('a check, for which somebody waits, goes before the looks that wait', async () => {
  const [hosts, visits] = [newHosts(), [] as string[]];
  const held = await startHost('held', visits, { holds: true });
  const looked = await startHost('looked', visits);
  const checked = await startHost('checked', visits);
  const all = [codeOf(hosts.look(held.host, context))];
  await held.isVisited;
  all.push(codeOf(hosts.look(looked.host, context)), codeOf(hosts.inspect(checked.host, context)));
  // Both wait once all that is done without input and output is done.
  await setImmediate();
  held.letGo();
  expect(await Promise.all(all)).not.toContain('connections_in_use');
  expect(visits).toEqual(['held', 'checked', 'looked']);
});

it('a look that waits for the connection of its host keeps no other host from being looked at', async () => {
  const [hosts, visits] = [newHosts(), [] as string[]];
  const held = await startHost('held', visits, { holds: true });
  const other = await startHost('other', visits);
  const reaching = codeOf(hosts.reach(held.host, context));
  await held.isVisited;
  const waiting = new AbortController();
  const look = codeOf(hosts.look(held.host, { signal: waiting.signal }));
  const looked = await codeOf(hosts.look(other.host, context));
  waiting.abort();
  held.letGo();
  expect([looked, await look]).toEqual(['connection_lost', 'connections_in_use']);
  expect([await reaching, visits]).toEqual(['connection_lost', ['held', 'other']]);
});
