import { request } from 'node:http';

/** A service of Podman or Docker of its own, on storage of its own: it sees no container of another one. */
export interface ContainerEngine {
  readonly socketPath: string;
  /** Runs `podman` or `docker` on the same storage, as an operator does by hand; returns what it prints. */
  cli(...words: string[]): Promise<string>;
  /** Ends the service as a crash does, and starts it again on the same storage and socket. Containers continue. */
  restart(): Promise<void>;
  /** Removes all containers, volumes and networks, ends the service and deletes its storage. */
  stop(): Promise<void>;
}

/** Whether the service behind a socket answers within a second. */
export function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const ping = request({ socketPath, path: '/_ping', timeout: 1_000, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    ping.once('timeout', () => ping.destroy());
    ping.once('error', () => resolve(false));
    ping.end();
  });
}
