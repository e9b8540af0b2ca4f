import { once } from 'node:events';
import { createServer } from 'node:net';

/** Throws where a port is taken. Asked before anything is started, so that nothing has to be undone; `command` is what to try again with another port. */
export async function requireFreePort(port: number, host: string, command: string): Promise<void> {
  const probe = createServer();
  try {
    await once(probe.listen(port, host), 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new Error(`port ${port} is taken by another program. Choose another: PORT=${port + 1} ${command}`);
  } finally {
    probe.close();
  }
}
