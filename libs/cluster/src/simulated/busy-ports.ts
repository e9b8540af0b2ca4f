import { createServer } from 'node:net';

/**
 * The code of a listener's error if the port is in use. Other errors, such as a wrong address, do not depend on the
 * port.
 */
export const portTaken = 'EADDRINUSE';

/** Those of these ports on which something else on the host listens now, by TCP. */
export async function busyPorts(host: string, ports: readonly number[]): Promise<ReadonlySet<number>> {
  const checked = await Promise.all(ports.map((port) => isBusy(host, port)));
  return new Set(ports.filter((_port, at) => checked[at]));
}

function isBusy(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === portTaken));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(false)));
  });
}
