import { describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { createApiKey } from '@atoll/api-keys';
import { mustEnd, spawnTypescript } from '@atoll/testing';
import { createLogger, NestLogger } from './logger.js';

function recorded(): { lines: string[]; logger: ReturnType<typeof createLogger> } {
  const lines: string[] = [];
  const logger = createLogger({
    service: 'teams',
    level: 'debug',
    destination: { write: (line: string) => void lines.push(line) },
  });
  return { lines, logger };
}

describe('logs', () => {
  it('are one JSON object a line, with service, level and time', () => {
    const { lines, logger } = recorded();
    logger.info({ request_id: 'r1' }, 'hello');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      service: 'teams',
      level: 'info',
      request_id: 'r1',
      msg: 'hello',
      time: expect.stringMatching(/Z$/),
    });
  });

  it('of Nest keep their context, their fields and their error', () => {
    const { lines, logger } = recorded();
    const nest = new NestLogger(logger);
    nest.warn({ message: 'slow', request_id: 'r1' }, 'Rpc');
    nest.error(new Error('broken'), 'the stack', 'Rpc');
    nest.error(AbortSignal.abort().reason, undefined, 'ExceptionHandler');
    nest.log('started', 'InstanceLoader');
    nest.log('Reconnected to NATS.', 'NatsLink');
    // Whoever starts the process says it too.
    nest.error(new Error('no port'), 'ExceptionHandler');
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { level: 'warn', context: 'Rpc', request_id: 'r1', msg: 'slow' },
      { level: 'error', context: 'Rpc', details: ['the stack'], err: { message: 'broken' }, msg: 'broken' },
      { level: 'debug', context: 'ExceptionHandler', msg: 'This operation was aborted' },
      { level: 'debug', msg: 'started' },
      { level: 'info', context: 'NatsLink', msg: 'Reconnected to NATS.' },
      { level: 'debug', err: { message: 'no port' }, msg: 'no port' },
    ]);
  });

  it('hold no secret, whether it comes in a field, in a text, in an error or in a URL', () => {
    const { lines, logger } = recorded();
    const key = createApiKey();
    logger.info({ api_key: 'hunter2', headers: { authorization: 'hunter2', 'x-api-key': 'hunter2' } }, `key ${key}`);
    new NestLogger(logger).error(new Error(`cannot use ${key} on postgres://atoll:hunter2@db/atoll`), 'Database');
    expect(lines).toHaveLength(2);
    expect(lines.join('')).not.toContain(key);
    expect(lines.join('')).not.toContain('hunter2');
    expect(lines.join('')).toContain('"context":"Database"');
  });

  it('are written however long a word in them is, and a password behind it is redacted all the same', () => {
    const { lines, logger } = recorded();
    const word = 'a'.repeat(1_000_000);
    mustEnd(() => logger.info(`${word}:// and ${word}://atoll:hunter2@db`));
    expect(lines.join('')).toContain(`${word}:// and ${word}://atoll:[redacted]@db`);
  });

  it('are written a moment later, the first ones and those after a silence', async () => {
    const process = spawnTypescript(new URL('./logger-process-fixture.ts', import.meta.url));
    while (process.lines.length < 1) await delay(10);
    process.kill('SIGUSR2');
    while (process.lines.length < 2) await delay(10);
    process.kill('SIGKILL');
    await process.ended;
  });

  it('keep no process alive that a signal ends: whether somebody reads them, or nobody any more', async () => {
    for (const isHeard of [true, false]) {
      const process = spawnTypescript(new URL('./logger-process-fixture.ts', import.meta.url));
      while (process.lines.length === 0) await delay(10);
      if (!isHeard) process.stopListening();
      process.kill('SIGTERM');
      expect(await process.ended).toBe(0);
      const said = process.lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
      expect(said).toEqual(isHeard ? ['there', 'stopping', 'stopped'] : ['there']);
    }
  });
});
