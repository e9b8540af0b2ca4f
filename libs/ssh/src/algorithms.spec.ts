import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, it } from '@jest/globals';
import ssh2, { type KexAlgorithm } from 'ssh2';
import { algorithms } from './algorithms.js';
import { generateKeyPair } from './private-key.js';

it.each<[KexAlgorithm, string]>([
  ['curve25519-sha256', 'ready'],
  ['ecdh-sha2-nistp256', 'ready'],
  // What a stranger may ask for without paying: 18 ms of the server.
  ['diffie-hellman-group18-sha512', 'no matching key exchange algorithm'],
  ['diffie-hellman-group16-sha512', 'no matching key exchange algorithm'],
  ['diffie-hellman-group14-sha256', 'no matching key exchange algorithm'],
])('a server of ours and a client that has %s alone: %s', async (kex, outcome) => {
  const server = new ssh2.Server({ hostKeys: [generateKeyPair().privateKey], algorithms }, (connection) =>
    connection.on('authentication', (context) => context.accept()).on('error', () => undefined),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = new ssh2.Client();
  try {
    const found = new Promise<string>((resolve) => {
      client.on('ready', () => resolve('ready')).on('error', ({ message }) => resolve(message));
    });
    client.connect({
      host: '127.0.0.1',
      port: (server.address() as AddressInfo).port,
      username: 'ada',
      algorithms: { kex: [kex] },
    });
    expect(await found).toContain(outcome);
  } finally {
    client.end();
    server.close();
  }
});
