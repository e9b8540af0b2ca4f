import type { ChildProcess } from 'node:child_process';
import { Agent, request } from 'node:http';
import { freePort } from '@atoll/testing';
import { start, stop, untilReady } from './processes.js';

const keyPepper = 'a pepper for benchmarks only';

export interface Answer {
  status: number;
  body: Buffer;
}

/** The platform in one process on a database of its own, limits off, asked as its operator over connections that stay open. */
export class Installation {
  private readonly agent: Agent;

  private constructor(
    private readonly child: ChildProcess,
    private readonly port: number,
    private readonly adminKey: string,
    connections: number,
  ) {
    this.agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  static async start(databaseUrl: string, dataDir: string, adminKey: string, connections = 1): Promise<Installation> {
    const port = await freePort();
    const child = start('apps/platform/src/main.js', [], {
      PORT: String(port),
      DATABASE_URL: databaseUrl,
      ATOLL_DATA_DIR: dataDir,
      ATOLL_LIMITS: 'off',
      ATOLL_ADMIN_KEY: adminKey,
      ATOLL_KEY_PEPPER: keyPepper,
    });
    await untilReady(`http://127.0.0.1:${port}/readyz`);
    return new Installation(child, port, adminKey, connections);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The answer, whole, whatever its status. */
  ask(method: string, path: string, json?: string): Promise<Answer> {
    const headers = {
      authorization: `Bearer ${this.adminKey}`,
      ...(json !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) }),
    };
    return new Promise((resolve, reject) => {
      const outgoing = request(
        { agent: this.agent, host: '127.0.0.1', port: this.port, method, path: `/api${path}`, headers },
        (incoming) => {
          const chunks: Buffer[] = [];
          incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
          incoming.on('error', reject);
          incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, body: Buffer.concat(chunks) }));
        },
      );
      outgoing.on('error', reject);
      outgoing.end(json);
    });
  }

  /** The body of the answer. Throws where it is not 2xx: a fast refusal is no figure. */
  async call(method: string, path: string, json?: string): Promise<Buffer> {
    const { status, body } = await this.ask(method, path, json);
    if (status >= 200 && status < 300) return body;
    throw new Error(`${method} ${path} answered ${status}: ${body.toString('utf8', 0, 500)}`);
  }

  async send<Reply>(method: string, path: string, body?: object): Promise<Reply> {
    return JSON.parse((await this.call(method, path, body && JSON.stringify(body))).toString()) as Reply;
  }

  async stop(): Promise<void> {
    this.agent.destroy();
    await stop(this.child);
  }
}
