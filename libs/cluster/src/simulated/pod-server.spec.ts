import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, expect, it } from '@jest/globals';
import { datagramsTo, listenTcp, listenUdp, type Behind, type Listener } from './pod-server.js';

const host = '127.0.0.1';
const turns = async (count: number): Promise<void> => {
  for (let made = 0; made < count; made += 1) await nextTurn();
};

/** A pod that keeps what it is asked, and answers once it may. */
class SlowPod implements Behind {
  readonly asked: string[] = [];
  readonly first = Promise.withResolvers<void>();
  readonly may = Promise.withResolvers<void>();

  async respond(request: string): Promise<string> {
    this.asked.push(request);
    this.first.resolve();
    await this.may.promise;
    return 'train';
  }

  echoes(): Promise<null> {
    return Promise.resolve(null);
  }
}

let listener: Listener | undefined;
afterEach(async () => {
  await listener?.close();
  listener = undefined;
});

async function tcp(pod: Behind): Promise<ReturnType<typeof connect>> {
  listener = await listenTcp(host, 0, null, pod);
  const client = connect({ host, port: listener.port }).on('error', () => undefined);
  await once(client, 'connect');
  return client;
}

it('lines are answered in order, the last one before the connection ends, characters of several bytes whole', async () => {
  const pod = new SlowPod();
  const client = await tcp(pod);
  client.write(Buffer.from('one\nzwö').subarray(0, -1));
  await pod.first.promise;
  client.end(Buffer.concat([Buffer.from('ö').subarray(-1), Buffer.from('lf\nthree\n')]));
  pod.may.resolve();
  expect(await text(client)).toBe('train: one\ntrain: zwölf\ntrain: three\n');
});

it('a page is answered whole to a client that still sends', async () => {
  const pod = new SlowPod();
  const client = await tcp(pod);
  client.write(`POST /upload HTTP/1.1\r\nhost: x\r\n\r\n${'x'.repeat(1_000_000)}`);
  await pod.first.promise;
  pod.may.resolve();
  client.end();
  expect(await text(client)).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\ntrain\n$/);
  expect(pod.asked).toEqual(['"POST /upload HTTP/1.1" 200']);
});

it('of what a client sends no more is read than is answered', async () => {
  const pod = new SlowPod();
  const client = await tcp(pod);
  let isTaken = false;
  client.write(`${'x'.repeat(4_000)}\n`.repeat(16_000), () => (isTaken = true));
  await pod.first.promise;
  await turns(5_000);
  expect(isTaken).toBe(false);
  expect(pod.asked).toHaveLength(1);
  client.destroy();
});

it('nothing is answered to a client that does not read', async () => {
  const pod = new SlowPod();
  pod.may.resolve();
  const client = await tcp(pod);
  client.pause();
  let isTaken = false;
  client.write(`${'x'.repeat(4_000)}\n`.repeat(16_000), () => (isTaken = true));
  await pod.first.promise;
  // What lies in sockets on the way there and back is some megabytes.
  await turns(50_000);
  expect(isTaken).toBe(false);
  client.destroy();
});

it('no line is answered after the door has closed', async () => {
  const pod = new SlowPod();
  const client = await tcp(pod);
  client.write('\n'.repeat(1_000));
  await pod.first.promise;
  await listener?.close();
  pod.may.resolve();
  await turns(100);
  expect(pod.asked).toHaveLength(1);
});

it('no line is answered after the client has gone', async () => {
  const pod = new SlowPod();
  const client = await tcp(pod);
  client.write('\n'.repeat(60_000));
  await pod.first.promise;
  client.resetAndDestroy();
  await once(client, 'close');
  pod.may.resolve();
  for (let before = 0; pod.asked.length > before; await turns(100)) before = pod.asked.length;
  expect(pod.asked.length).toBeLessThan(1_000);
});

it('a line that does not end is not kept', async () => {
  const client = await tcp(new SlowPod());
  client.resume().write('x'.repeat(10_000));
  await once(client, 'close');
});

it('of datagrams that come at once some are answered, and none after the door has closed', async () => {
  const pod = new SlowPod();
  listener = await listenUdp(host, 0, pod);
  const client = createSocket('udp4');
  const send = () => new Promise((resolve) => client.send('hello', listener?.port, host, resolve));
  for (let sent = 0; sent < 100; sent += 1) await send();
  await pod.first.promise;
  await turns(100);
  expect(pod.asked).toHaveLength(16);
  await listener.close();
  listener = undefined;
  pod.may.resolve();
  await turns(10);
  client.close();
});

it('a datagram from port 0, or one that the pod cannot answer, is heard and not answered', async () => {
  const sent: unknown[] = [];
  const socket = { send: (...what: unknown[]) => sent.push(what) } as unknown as Socket;
  const { signal } = new AbortController();
  const pod = new SlowPod();
  pod.may.resolve();
  const hear = datagramsTo(pod, socket, signal);
  await hear(Buffer.from('hello'), { port: 0, address: host });
  expect([pod.asked.length, sent]).toEqual([1, []]);
  const mute = { ...pod, respond: () => Promise.reject(new Error('gone')) } as unknown as SlowPod;
  const hearMute = datagramsTo(mute, socket, signal);
  for (let count = 0; count < 20; count += 1) await hearMute(Buffer.from('hello'), { port: 9, address: host });
  expect(sent).toEqual([]);
  await hear(Buffer.from('hello'), { port: 9, address: host });
  expect(sent).toHaveLength(1);
});
