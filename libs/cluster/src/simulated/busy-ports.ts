import { createServer } from 'node:net';

/** Those of these ports on which a TCP listener could be opened now. */
export async function freePorts(host: string, ports: readonly number[]): Promise<ReadonlySet<number>> {
  const checked = await Promise.all(ports.map((port) => isFree(host, port)));
  return new Set(ports.filter((_port, at) => checked[at]));
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
