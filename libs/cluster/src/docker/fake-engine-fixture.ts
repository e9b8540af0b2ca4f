import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { PodRun } from '../objects.js';
import { DockerDriver, type DockerDriverOptions } from './docker-driver.js';

/** A pod that wants nothing in particular. */
export const plainPod = ({ ref, ...more }: Pick<PodRun, 'ref' | 'owner'> & Partial<PodRun>): PodRun => ({
  ref,
  podName: ref.id,
  image: 'image',
  command: [],
  env: new Map(),
  cpu: null,
  memoryGb: null,
  slices: [],
  volumes: [],
  requestedAt: new Date(),
  ...more,
});

type Answer = (request: IncomingMessage & { url: string }, response: ServerResponse) => void;

/**
 * An engine of no containers, and a driver on it: a spec answers the driver's calls in the place of Docker. Each exec
 * that is attached to begins its session, and says nothing more.
 */
export class FakeEngine {
  readonly driver: DockerDriver;
  /** Those that were attached to, in order. */
  readonly sessions: Duplex[] = [];
  /** Connections stay open, and nothing answers any more. */
  isFrozen = false;
  /** How often it was asked whether it lives. */
  pings = 0;

  private constructor(
    private readonly folder: string,
    private readonly server: Server,
    readonly socketPath: string,
    options: Partial<DockerDriverOptions>,
  ) {
    server.on('upgrade', (_request, socket: Duplex) => {
      this.sessions.push(socket.on('error', () => undefined).on('end', () => socket.destroy()));
      socket.resume();
      socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n42\n');
    });
    const installation = { installationId: 'i1', address: { socketPath }, publicHost: '127.0.0.1' };
    this.driver = new DockerDriver({ ...installation, doorImage: 'door', ...options });
  }

  /** `answer` is asked for all but the engine's greeting. */
  static async start(answer: Answer, options: Partial<DockerDriverOptions> = {}): Promise<FakeEngine> {
    const folder = await mkdtemp(join(tmpdir(), 'atoll-engine-'));
    const socketPath = join(folder, 'engine.sock');
    const server = createServer((request, response) => {
      const { url = '' } = request;
      request.resume();
      if (engine.isFrozen) return;
      if (url.startsWith('/_ping')) {
        engine.pings += 1;
        response.writeHead(200, { 'Api-Version': '1.41', Server: 'Docker/28.0 (linux)' }).end('OK');
      } else answer(Object.assign(request, { url }), response);
    });
    await once(server.listen(socketPath), 'listening');
    const engine = new FakeEngine(folder, server, socketPath, options);
    return engine;
  }

  async stop(): Promise<void> {
    await this.driver.close();
    for (const socket of this.sessions) socket.destroy();
    this.server.close();
    this.server.closeAllConnections();
    await rm(this.folder, { recursive: true });
  }
}
