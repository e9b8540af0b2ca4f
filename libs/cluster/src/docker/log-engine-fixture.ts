import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { timeoutFactor } from '@atoll/testing';
import type { LogBatch } from '../observations.js';
import { FakeEngine } from './fake-engine-fixture.js';
import type { LogWaits } from './logs.js';

const container = {
  Id: 'c1',
  State: { Status: 'running', Running: true, StartedAt: '2026-01-01T00:00:00Z' },
  Config: { Labels: { 'dev.atoll.installation': 'i1' } },
};

interface Given {
  /** The log is answered with nothing, not even a head, until the spec writes into it, as Podman does. */
  readonly isSilent?: boolean;
  readonly logWaits?: Partial<LogWaits>;
}

/** An engine of one container that runs, whose log a spec writes. */
export class LogEngine {
  /**
   * Of the container; null: it is gone, and its log stays open; `unknown`: the engine fails to tell; `hanging`: it
   * never tells.
   */
  status: 'running' | 'exited' | 'unknown' | 'hanging' | null = 'running';
  /** How often it was asked for. */
  looks = 0;
  /** The answers to all who asked for what there is, and do not follow. */
  readonly rests: ServerResponse[] = [];

  private constructor(
    readonly engine: FakeEngine,
    /** The answer to whom follows the log first. */
    readonly follow: Promise<ServerResponse>,
    /** The answer to whom asks first for what there is, and does not follow. */
    readonly rest: Promise<ServerResponse>,
  ) {}

  static async start({ isSilent = false, ...options }: Given = {}): Promise<LogEngine> {
    const [follow, rest] = [Promise.withResolvers<ServerResponse>(), Promise.withResolvers<ServerResponse>()];
    const engine = await FakeEngine.start(({ url }, response) => {
      if (!url.includes('/logs?')) return void here.#describe(response);
      if (url.includes('follow=false')) return (here.rests.push(response), rest.resolve(response));
      if (!isSilent) response.writeHead(200).flushHeaders();
      follow.resolve(response);
    }, options);
    const here = new LogEngine(engine, follow.promise, rest.promise);
    return here;
  }

  #describe(response: ServerResponse): void {
    const { status } = this;
    this.looks += 1;
    if (status === 'hanging') return;
    if (status === null) response.writeHead(404).end(JSON.stringify({ message: 'no such container' }));
    else if (status === 'unknown') response.writeHead(500).end(JSON.stringify({ message: 'a lock was lost' }));
    else response.end(JSON.stringify({ ...container, State: { ...container.State, Status: status } }));
  }

  readAfter(cursor: string | null, signal = AbortSignal.timeout(60_000 * timeoutFactor)): AsyncGenerator<LogBatch> {
    return this.engine.driver.readLogs({ kind: 'pod', id: 'p1', run: 1 }, cursor, signal);
  }

  /** A piece of the output, as the engine sends it. */
  async send(text: string, secondsAgo: number, to = this.follow): Promise<void> {
    const data = Buffer.from(`${new Date(Date.now() - secondsAgo * 1000).toISOString()} ${text}`);
    const head = Buffer.alloc(8);
    head[0] = 1;
    head.writeUInt32BE(data.length, 4);
    const response = await to;
    if (!response.write(Buffer.concat([head, data]))) await once(response, 'drain');
  }

  stop(): Promise<void> {
    return this.engine.stop();
  }
}

/** The messages of the next batch, and whether they are all. */
export async function nextOf(reading: AsyncGenerator<LogBatch>): Promise<[messages: string[], isCurrent: boolean]> {
  const { value } = (await reading.next()) as { value: LogBatch };
  return [value.lines.map(({ message }) => message), value.isCurrent];
}
