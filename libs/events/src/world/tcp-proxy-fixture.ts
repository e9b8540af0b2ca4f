import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A door between a process and a server: cut, the one is dead to the other. */
export interface TcpProxy {
  /** The server's URL, by way of the proxy. */
  readonly url: string;
  /** Breaks every connection and refuses new ones. */
  cut(): void;
  /** Lets connections through again. */
  mend(): void;
  /** Forwards nothing, while all connections stay open. */
  freeze(): void;
  thaw(): void;
  close(): Promise<void>;
}

export async function openTcpProxy(serverUrl: string): Promise<TcpProxy> {
  const target = new URL(serverUrl);
  const sockets = new Set<Socket>();
  const pairs = new Set<() => void>();
  let isCut = false;
  let isFrozen = false;
  const adopt = (socket: Socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    adopt(near);
    if (isCut) return void near.destroy();
    const far = connect(Number(target.port), target.hostname);
    adopt(far);
    const join = () => {
      if (isFrozen)
        for (const [from, to] of [
          [near, far],
          [far, near],
        ] as const)
          from.unpipe(to).pause();
      else near.pipe(far).pipe(near);
    };
    pairs.add(join);
    join();
    near.on('close', () => far.destroy());
    far.on('close', () => {
      pairs.delete(join);
      near.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(serverUrl);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as AddressInfo).port);
  const cut = () => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: url.href,
    cut,
    mend: () => (isCut = false),
    freeze: () => {
      isFrozen = true;
      for (const join of pairs) join();
    },
    thaw: () => {
      if (!isFrozen) return;
      isFrozen = false;
      for (const join of pairs) join();
    },
    close: async () => {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
