import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

interface HeldRequest {
  /** Lets the engine have it. Resolves with the status of its answer, whether anybody still waits for it or not. */
  letThrough(): Promise<number>;
}

/**
 * Stands between one driver and the engine, as an engine does that takes its time: what matches comes to the engine
 * when the spec lets it through, also where the driver has given up or is gone meanwhile. All else passes at once.
 */
export class HeldEngine {
  readonly #held: HeldRequest[] = [];
  readonly #waiting: ((held: HeldRequest) => void)[] = [];

  private constructor(
    readonly socketPath: string,
    private readonly engine: string,
    private readonly server: Server,
    private readonly holds: RegExp,
  ) {}

  /**
   * `holds`: matches the method and the path of the requests to hold, such as `POST /v1.41/containers/create?name=…`.
   */
  static async start(engine: string, holds: RegExp): Promise<HeldEngine> {
    const socketPath = `${engine}.${Math.random().toString(36).slice(2, 8)}`;
    const server = createServer((asked, response) => void held.#take(asked, response));
    const held = new HeldEngine(socketPath, engine, server, holds);
    await once(server.listen(socketPath), 'listening');
    return held;
  }

  /** The next request that is held; waits for it. */
  next(): Promise<HeldRequest> {
    const held = this.#held.shift();
    return held ? Promise.resolve(held) : new Promise((resolve) => this.#waiting.push(resolve));
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  async #take(asked: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => undefined);
    const body = await buffer(asked).catch(() => null);
    if (!body) return;
    const pass = () => this.#pass(asked, body, response);
    if (!this.holds.test(`${asked.method} ${asked.url}`)) return void (await pass().catch(() => response.destroy()));
    const held = { letThrough: pass };
    const waiting = this.#waiting.shift();
    if (waiting) waiting(held);
    else this.#held.push(held);
  }

  async #pass(
    { method, url: path, headers }: IncomingMessage,
    body: Buffer,
    response: ServerResponse,
  ): Promise<number> {
    const passed = request({ socketPath: this.engine, method, path, headers });
    passed.end(body);
    const [answer] = (await once(passed, 'response')) as [IncomingMessage];
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
    await once(answer, 'end');
    return answer.statusCode ?? 0;
  }
}
