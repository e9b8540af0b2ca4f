import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { AppError } from '@atoll/errors';
import { startNats, type NatsServer } from '@atoll/testing';
import { systemContext } from './call-context.js';
import { Json } from './json.js';
import { echo, missing, pinged, probe, Question, startProbe, type Probe } from './probe-fixture.js';
import type { Rpc } from './rpc.js';
import { errorOf, inProcess, overNats, type Transport } from './transports-fixture.js';

let server: NatsServer;
beforeAll(async () => {
  server = await startNats();
});
afterAll(() => server.stop());

describe.each([
  ['over NATS', () => overNats(server.url)],
  ['in one process', inProcess],
])('a call %s', (name, open) => {
  let transport: Transport;
  let rpc: Rpc;
  let service: Probe;
  let logged: string[];
  const ask = (question: Question = {}, deadlineMs = 60_000) =>
    rpc.call(probe.ask, question, systemContext('spec', { deadlineMs }));

  beforeAll(() => {
    transport = open();
    rpc = transport.rpc;
  });
  afterAll(() => transport.close());

  beforeEach(async () => {
    logged = [];
    jest
      .spyOn(Logger.prototype, 'error')
      .mockImplementation((...words: unknown[]) => void logged.push(JSON.stringify(words)));
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    service = await startProbe(transport.strategy({ service: 'probe', maxInFlight: 3 }));
  });
  afterEach(async () => {
    await service.stop();
    jest.restoreAllMocks();
  });

  it('gives the handler an instance of the input class and the caller the answer', async () => {
    let seen: unknown;
    service.answer = (question) => {
      seen = question;
      return Promise.resolve({ size: question.size });
    };
    expect(await ask({ size: 3 })).toEqual({ size: 3 });
    expect(seen).toBeInstanceOf(Question);
  });

  it('gives the handler the context as the caller made it', async () => {
    const idempotency = { key: 'kéy\n ', scope: 'a', fingerprint: 'b' };
    const context = systemContext('spec', { deadlineMs: 5_000, traceparent: '00-1-2-01', idempotency });
    service.answer = (_question, { ...seen }) => Promise.resolve(seen);
    expect(await rpc.call(probe.ask, {}, context)).toEqual(context);
  });

  it('carries JSON and nothing else', async () => {
    service.answer = () => Promise.resolve({ at: new Date(0), left: undefined, text: '\ud83d\ude80 ä \u2028' });
    expect(await ask()).toEqual({ at: '1970-01-01T00:00:00.000Z', text: '\ud83d\ude80 ä \u2028' });
  });

  it('names each faulty field of an input, and does not handle it', async () => {
    const input = { size: -1, items: [{ name: 'fine' }, { name: '' }] } as Question;
    const error = await errorOf(ask(input));
    expect(error.code).toBe('invalid_input');
    expect(error.details.errors?.map(({ path }) => path).sort()).toEqual(['items.1.name', 'size']);
    expect(service.handled).toBe(0);
  });

  it('tells a caller of a newer release that the service is to be upgraded, whatever else it does not take, and logs it once', async () => {
    const sentence = (field: string) =>
      `The service probe is of an older release that does not know the field ${field}. It is being upgraded.`;
    const newer: [field: string, input: object][] = [
      ['network', { network: 'n' }],
      ['items.0.other', { items: [{ name: 'fine', other: 1 }] }],
      ['network', { size: -1, network: 'n' }],
    ];
    for (const [field, input] of newer) {
      const error = await errorOf(ask(input));
      expect(error.toWire()).toEqual({ code: 'unavailable', message: sentence(field), retryAfterSeconds: 10 });
    }
    expect(service.handled).toBe(0);
    const warned = jest.mocked(Logger.prototype.warn).mock.calls.map(([line]) => (line as { message: string }).message);
    expect(warned).toEqual([
      'The service probe is older than this process: probe.ask does not know the field network. Upgrade it.',
    ]);
  });

  it('passes on the error that a handler throws on purpose', async () => {
    const thrown = new AppError('conflict', 'Taken.', {
      retryAfterSeconds: 7,
      errors: [{ path: 'a', code: 'b', message: 'c' }],
    });
    service.answer = () => Promise.reject(thrown);
    const error = await errorOf(ask());
    expect(error.toWire()).toEqual(thrown.toWire());
    expect(logged).toEqual([]);
  });

  it('hides an error that nobody planned from the caller, and logs it with the id of the request', async () => {
    service.answer = () => Promise.reject(new Error('password=hunter2'));
    const context = systemContext('spec');
    const error = await errorOf(rpc.call(probe.ask, {}, context));
    expect(error.toWire()).toEqual({ code: 'internal', message: 'Something went wrong on our side.' });
    expect(logged.join()).toContain(context.requestId);
    expect(logged.join()).toContain('hunter2');
  });

  it('takes no answer for an error, whatever its keys', async () => {
    const answers = [
      { err: 'x' },
      { response: 1, isDisposed: true },
      { code: 'internal', message: 'x' },
      { error: {} },
      { status: 'error' },
    ];
    for (const answer of answers) {
      service.answer = () => Promise.resolve(answer);
      expect(await ask()).toEqual(answer);
    }
  });

  it('tells at once of an answer that has no JSON', async () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    for (const answer of [{ big: 1n }, cycle, undefined]) {
      service.answer = () => Promise.resolve(answer as never);
      expect((await errorOf(ask({}, 600_000))).code).toBe('internal');
    }
  });

  it('tells at once of an input that has no JSON', async () => {
    expect((await errorOf(ask({ size: 1n } as never))).code).toBe('internal');
  });

  it('refuses a request beyond 960 KiB', async () => {
    expect((await errorOf(ask({ text: 'x'.repeat(960 * 1024) }))).code).toBe('payload_too_large');
    expect(await ask({ text: 'x'.repeat(900 * 1024) })).toHaveProperty('text');
  });

  it.each([0.5, 2, 63])('carries an answer of %d MiB', async (mebibytes) => {
    const text = 'ä€x'.repeat(Math.floor((mebibytes * 1024 * 1024) / 6));
    service.answer = () => Promise.resolve({ text });
    expect((await ask({}, 60_000))['text'] === text).toBe(true);
  });

  it('gives an answer as the JSON that came, to those who pass it on, and nothing that is no object', async () => {
    const json = (context = systemContext('spec')) => rpc.callForJson(probe.ask, {}, context);
    service.answer = () => Promise.resolve({ cost: '0.10', big: 12345678901 });
    expect(await json()).toBe('{"cost":"0.10","big":12345678901}');
    service.answer = () => Promise.resolve(['no object'] as never);
    expect((await errorOf(json())).code).toBe('internal');
    service.answer = () => Promise.reject(new AppError('conflict', 'Taken.'));
    expect((await errorOf(json())).code).toBe('conflict');
  });

  it('carries an answer that is written in parts, never whole, with turns of the event loop for others between the parts', async () => {
    const long = `"${'ä€x'.repeat(10_000)}"`;
    const parts = [
      Buffer.from('{"list":[0'),
      ...Array.from({ length: 100 }, () => Buffer.from(`,${long}`)),
      Buffer.from(']}'),
    ];
    service.answer = () => Promise.resolve(new Json(parts));
    let turns = 0;
    const count = () => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    let isDone = false;
    count();
    const json = (await rpc.callForJson(probe.ask, {}, systemContext('spec', { deadlineMs: 60_000 }))) as Uint8Array[];
    isDone = true;
    expect(Buffer.concat(json).equals(Buffer.concat(parts))).toBe(true);
    expect(Math.max(...json.map(({ length }) => length))).toBeLessThanOrEqual(512 * 1024);
    expect(turns).toBeGreaterThan(name === 'over NATS' ? json.length : 0);
    expect((await ask({}, 60_000))['list']).toHaveLength(101);
  });

  it('carries many long answers at once', async () => {
    service.answer = ({ size }) => Promise.resolve({ size, text: 'x'.repeat(6_000_000) });
    const replies = await Promise.all([0, 1, 2].map((size) => ask({ size }, 60_000)));
    expect(replies.map(({ size }) => size)).toEqual([0, 1, 2]);
  });

  it('tells of an answer beyond 64 MiB', async () => {
    const text = 'x'.repeat(64 * 1024 * 1024);
    service.answer = () => Promise.resolve({ text });
    expect((await errorOf(ask({}, 60_000))).message).toBe('The response would be larger than 64 MiB.');
  });

  it('carries an error that is longer than one message', async () => {
    const message = 'id must be a UUID. '.repeat(1_000);
    const errors = Array.from({ length: 100 }, (_, index) => ({ path: `events.${index}.id`, code: 'isUuid', message }));
    service.answer = () => Promise.reject(new AppError('invalid_input', 'Many.', { errors }));
    expect((await errorOf(ask())).details.errors).toEqual(errors);
  });

  it('waits for a silent service until the deadline and no longer', async () => {
    service.answer = () => new Promise((resolve) => setTimeout(() => resolve({}), 200));
    expect((await errorOf(ask({}, 50))).code).toBe('deadline_exceeded');
  });

  it('does not even ask after the deadline', async () => {
    expect((await errorOf(ask({}, 0))).code).toBe('deadline_exceeded');
    expect(service.handled).toBe(0);
  });

  it('takes a deadline that no timer could wait for', async () => {
    expect(await ask({ size: 1 }, 2 ** 40)).toEqual({ size: 1 });
  });

  it('tells at once where nobody answers', async () => {
    const error = await errorOf(rpc.call(missing.ask, {}, systemContext('spec', { deadlineMs: 600_000 })));
    expect(error).toMatchObject({ code: 'unavailable', details: { retryAfterSeconds: 1 } });
  });

  it('sheds what comes on top of its limit, and takes the next', async () => {
    const waiting: (() => void)[] = [];
    service.answer = (question) => new Promise((resolve) => waiting.push(() => resolve({ ...question })));
    const taken = [1, 2, 3].map((size) => ask({ size }));
    expect(await errorOf(ask())).toMatchObject({ code: 'unavailable', details: { retryAfterSeconds: 1 } });
    for (const resolve of waiting) resolve();
    expect(await Promise.all(taken)).toEqual([{ size: 1 }, { size: 2 }, { size: 3 }]);
    service.answer = echo;
    expect(await ask({ size: 4 })).toEqual({ size: 4 });
  });

  it('hears broadcasts until it stops listening', async () => {
    const heard: string[] = [];
    const hear = () => new Promise<void>((resolve) => void (next = resolve));
    let next = (): void => undefined;
    const stop = rpc.listen(pinged, ({ key }) => (heard.push(key), next()));
    const others = rpc.listen(pinged, () => next());
    for (const key of ['a', 'b']) {
      const both = hear();
      rpc.publish(pinged, { key });
      await both;
    }
    stop();
    const other = hear();
    rpc.publish(pinged, { key: 'c' });
    await other;
    others();
    expect(heard).toEqual(['a', 'b']);
  });

  it('drops a broadcast that is not what it should be, or whose listener throws, and goes on', async () => {
    const heard = new Promise<void>((resolve) => {
      rpc.listen(pinged, ({ key }) => {
        if (key === 'throw') throw new Error('the fault of a listener');
        resolve();
      });
    });
    rpc.publish(pinged, { key: 1n } as never);
    rpc.publish(pinged, { key: 'much too long for a key' });
    rpc.publish(pinged, { key: 'throw' });
    rpc.publish(pinged, { key: 'fine' });
    await heard;
  });
});
