import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface Pooler {
  /** The database's URL, by way of the pooler. */
  readonly url: string;
  close(): Promise<void>;
}

/** Passes connections on without some of their start-up parameters, as PgBouncer does with those it is to ignore. */
export async function openPooler(databaseUrl: string, ignored: readonly string[]): Promise<Pooler> {
  const target = new URL(databaseUrl);
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    for (const socket of [near, far]) sockets.add(socket.on('error', () => socket.destroy()));
    near.once('data', (startUp: Buffer) => {
      far.write(without(ignored, startUp));
      near.pipe(far).pipe(near);
    });
    near.on('close', () => far.destroy());
    far.on('close', () => near.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: url.href,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/**
 * A start-up message: its length and the version of the protocol, four bytes each, then names and values, each text
 * ended by a zero byte, and another zero byte at the end.
 * https://www.postgresql.org/docs/18/protocol-message-formats.html
 */
function without(ignored: readonly string[], message: Buffer): Buffer {
  const texts = message.subarray(8).toString().split('\0');
  const kept = texts.filter((_, at) => !ignored.includes(texts[at - (at % 2)] ?? ''));
  const changed = Buffer.concat([message.subarray(0, 8), Buffer.from(kept.join('\0'))]);
  changed.writeInt32BE(changed.length);
  return changed;
}
