import type { ChildProcess } from 'node:child_process';
import { Agent, request } from 'node:http';
import { freePort } from '@atoll/testing';
import { serviceDefinitions } from '../service-definitions.js';
import { residentMiB, start, stop, untilOperator, untilReady } from './processes.js';

const busSecret = 'a secret for benchmarks only';

function envOf(databaseUrl: string, adminKey: string): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    ATOLL_LIMITS: 'off',
    ATOLL_ADMIN_KEY: adminKey,
    ATOLL_KEY_PEPPER: 'a pepper for benchmarks only',
  };
}

export interface Answer {
  status: number;
  body: Buffer;
}

/** The platform on a database of its own, limits off, asked as its operator over connections that stay open. */
export class Installation {
  private readonly agent: Agent;

  private constructor(
    private readonly children: readonly ChildProcess[],
    private readonly port: number,
    private readonly adminKey: string,
    connections: number,
  ) {
    this.agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  /** In one process. `settings`: environment variables beside those of every installation. */
  static async start(
    databaseUrl: string,
    dataDir: string,
    adminKey: string,
    connections = 1,
    settings: Record<string, string> = {},
  ): Promise<Installation> {
    const port = await freePort();
    const env = { ...envOf(databaseUrl, adminKey), PORT: String(port), ATOLL_DATA_DIR: dataDir, ...settings };
    const child = start('apps/platform/src/main.js', [], env);
    return Installation.ready([child], port, adminKey, connections);
  }

  /** A process for each service, over NATS. */
  static async startServices(
    databaseUrl: string,
    natsUrl: string,
    adminKey: string,
    connections = 1,
  ): Promise<Installation> {
    const port = await freePort();
    const env = { ...envOf(databaseUrl, adminKey), NATS_URL: natsUrl, ATOLL_BUS_SECRET: busSecret };
    const children: ChildProcess[] = [];
    for (const { name } of await serviceDefinitions()) {
      const healthPort = await freePort();
      children.push(start(`apps/${name}/src/main.js`, [], { ...env, HEALTH_PORT: String(healthPort) }));
      await untilReady(`http://127.0.0.1:${healthPort}/readyz`);
    }
    children.push(start('apps/gateway/src/main.js', [], { ...env, PORT: String(port) }));
    return Installation.ready(children, port, adminKey, connections);
  }

  private static async ready(
    children: readonly ChildProcess[],
    port: number,
    adminKey: string,
    connections: number,
  ): Promise<Installation> {
    await untilReady(`http://127.0.0.1:${port}/readyz`);
    await untilOperator(`http://127.0.0.1:${port}`, adminKey);
    return new Installation(children, port, adminKey, connections);
  }

  /** Resident memory of its processes together, in MiB. */
  async residentMiB(): Promise<number> {
    const all = await Promise.all(this.children.map(({ pid = 0 }) => residentMiB(pid)));
    return all.reduce((sum, one) => sum + one, 0);
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

  /** The same platform at another of its ports. */
  beside(port: number): Installation {
    return new Installation([], port, this.adminKey, this.agent.maxSockets);
  }

  /** Closes the connections alone. */
  close(): void {
    this.agent.destroy();
  }

  async stop(): Promise<void> {
    this.close();
    for (const child of this.children.toReversed()) await stop(child);
  }
}
