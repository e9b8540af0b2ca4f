import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { timeoutFactor } from '@atoll/testing';
import type { LogBatch } from '../observations.js';
import { FakeEngine } from './fake-engine-fixture.js';

const container = {
  Id: 'c1',
  State: { Status: 'running', Running: true, StartedAt: '2026-01-01T00:00:00Z' },
  Config: { Labels: { 'dev.atoll.installation': 'i1' } },
};

/** An engine of one container that runs, whose log a spec writes. */
export class LogEngine {
  private constructor(
    readonly engine: FakeEngine,
    /** The answer to whom follows the log first. */
    readonly follow: Promise<ServerResponse>,
  ) {}

  /** `isSilent`: the log is answered with nothing, not even a head, until the spec writes into it, as Podman does. */
  static async start({ isSilent = false } = {}): Promise<LogEngine> {
    const opened = Promise.withResolvers<ServerResponse>();
    const engine = await FakeEngine.start(({ url }, response) => {
      if (!url.includes('/logs?')) return void response.end(JSON.stringify(container));
      if (!isSilent) response.writeHead(200).flushHeaders();
      opened.resolve(response);
    });
    return new LogEngine(engine, opened.promise);
  }

  readAfter(cursor: string | null, signal = AbortSignal.timeout(60_000 * timeoutFactor)): AsyncGenerator<LogBatch> {
    return this.engine.driver.readLogs({ kind: 'pod', id: 'p1', run: 1 }, cursor, signal);
  }

  /** A piece of the output, as the engine sends it. */
  async send(text: string, secondsAgo: number): Promise<void> {
    const data = Buffer.from(`${new Date(Date.now() - secondsAgo * 1000).toISOString()} ${text}`);
    const head = Buffer.alloc(8);
    head[0] = 1;
    head.writeUInt32BE(data.length, 4);
    const response = await this.follow;
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
