import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from '@jest/globals';
import { dial, isDiallable } from './dial.js';
import type { SshError } from './ssh-error.js';

const strict = { allowLoopback: false };
const local = { allowLoopback: true };

describe('an address', () => {
  it('may be dialled where it is a host’s own, private networks included', () => {
    for (const address of ['9.9.9.9', '10.1.2.3', '192.168.0.9', '100.64.0.1', '2620:fe::fe', 'fd12::7']) {
      expect([address, isDiallable(address, strict)]).toEqual([address, true]);
    }
  });

  it('of loopback and link-local is dialled only where that is allowed', () => {
    for (const address of [
      '127.0.0.1',
      '127.9.9.9',
      '::1',
      '169.254.7.7',
      'fe80::1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
    ]) {
      expect([address, isDiallable(address, strict), isDiallable(address, local)]).toEqual([address, false, true]);
    }
  });

  it('that gives away a machine’s credentials is never dialled, in whatever form', () => {
    const forms = [
      '169.254.169.254',
      '::ffff:169.254.169.254',
      '::ffff:a9fe:a9fe',
      '64:ff9b::a9fe:a9fe',
      '2002:a9fe:a9fe::',
      '168.63.129.16',
      'fd00:ec2::254',
      'fd20:ce::254',
      '100.100.100.200',
    ];
    for (const address of forms) expect([address, isDiallable(address, local)]).toEqual([address, false]);
  });

  it('that is no host’s is never dialled', () => {
    for (const address of ['0.0.0.0', '255.255.255.255', '224.0.0.1', 'ff02::1', '::', 'localhost', '1', '']) {
      expect([address, isDiallable(address, local)]).toEqual([address, false]);
    }
  });
});

describe('dialling a name', () => {
  it('looks at the addresses that it leads to', async () => {
    await expect(dial('localhost', 1, strict, AbortSignal.timeout(5_000))).rejects.toMatchObject({
      kind: 'address_forbidden',
      isPermanent: true,
    });
    await expect(dial('localhost', 1, local, AbortSignal.timeout(5_000))).rejects.toMatchObject({ kind: 'refused' });
  });

  it('leaves a host that does not take the connection, long before its signal is aborted', async () => {
    const listening = new Worker(
      `const { parentPort } = require('node:worker_threads');
       const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
         parentPort.postMessage(server.address().port);
         Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
       });`,
      { eval: true },
    );
    const [port] = (await once(listening, 'message')) as [number];
    const sockets: Socket[] = [];
    const begunAtMs = performance.now();
    try {
      const failures = await Promise.all(
        Array.from({ length: 6 }, () =>
          dial('127.0.0.1', port, { ...local, connectMs: 300 }, new AbortController().signal).then(
            (socket) => void sockets.push(socket),
            (error: SshError) => error.kind,
          ),
        ),
      );
      expect(failures).toContain('timeout');
      // The kernel gives up after two minutes.
      expect(performance.now() - begunAtMs).toBeLessThan(60_000);
    } finally {
      sockets.forEach((socket) => socket.destroy());
      await listening.terminate();
    }
  });

  it('ends with its signal', async () => {
    await expect(dial('127.0.0.1', 1, local, AbortSignal.abort())).rejects.toMatchObject({ kind: 'timeout' });
  });
});
