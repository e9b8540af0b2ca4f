import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { connect, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { startNats, type NatsServer } from '@atoll/testing';
import { systemContext } from './call-context.js';
import { headersOf, signedMessage, type Captured, type Maker } from './hostile-fixture.js';
import { NatsLink } from './nats-link.js';
import { NatsRpc } from './nats-rpc.js';
import { NatsStrategy } from './nats-strategy.js';
import { probe, startProbe } from './probe-fixture.js';
import { Signer } from './signature.js';
import { errorOf, specSecret as secret, specSubject, until } from './transports-fixture.js';

const maxPayload = 64 * 1024;
/** NATS takes the connection from a reader that is behind by 64 MiB, or for 10 s: on a busy machine, one of a spec. */
const patience = 'max_pending: 268435456, write_deadline: "60s"';
const configuration = `
  max_payload: ${maxPayload}, ${patience}
  no_auth_user: anybody
  authorization { users: [
    { user: anybody, password: any },
    { user: deaf, password: any, permissions: { subscribe: { deny: ["probe.>"] } } }
  ] }`;

describe('a call over a NATS where things go wrong', () => {
  let server: NatsServer;
  let link: NatsLink;
  let rpc: NatsRpc;
  let other: NatsConnection;
  let logged: string[];
  const ask = (deadlineMs = 60_000, text?: string) =>
    rpc.call(probe.ask, { ...(text && { text }) }, systemContext('spec', { deadlineMs }));

  beforeAll(async () => {
    server = await startNats({ configuration });
    link = NatsLink.open({ servers: server.url });
    rpc = new NatsRpc(link, new Signer(secret));
    other = await connect({ servers: server.url });
    await link.connected();
  });
  afterAll(async () => {
    await link.close();
    await other.close();
    await server.stop();
  });
  beforeEach(() => {
    logged = [];
    const log = (...words: unknown[]): undefined => void logged.push(JSON.stringify(words));
    jest.spyOn(Logger.prototype, 'error').mockImplementation(log);
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(log);
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** Answers one request as no service of ours would, though it signs. */
  async function answerWith(messagesFor: (maker: Maker) => Captured[]): Promise<void> {
    const respond = (request: Msg): void => {
      const maker = { secret, service: 'probe', request: request.headers?.get('Atoll-Signature') ?? '' };
      for (const { data, marks } of messagesFor(maker)) request.respond(data, { headers: headersOf(marks) });
    };
    // A request whose caller has given up, and that is still on its way, is none of this one's.
    await link.flush();
    other.subscribe(specSubject(probe.ask), { max: 1, callback: (_error, request) => respond(request) });
    await other.flush();
  }

  it.each(['', '{', 'nonsense', '"text"', '7', 'null', '\ud83d'])(
    'survives an answer that is no object and comes twice, with one line in the log: %j',
    async (text) => {
      await answerWith((maker) => [signedMessage(maker, text), signedMessage(maker, text)]);
      expect(await errorOf(ask())).toMatchObject({
        code: 'internal',
        message: 'The response of a service could not be read.',
      });
      await answerWith((maker) => [signedMessage(maker, '{"size":1}')]);
      expect(await ask()).toEqual({ size: 1 });
      expect(logged).toEqual([expect.stringContaining('The response of probe.ask is not a JSON object.')]);
    },
  );

  it.each(['nonsense', '{}', '{"code":"nonsense","message":"x"}', 'null'])(
    'survives an error that is none, and comes twice: %j',
    async (text) => {
      await answerWith((maker) => [
        signedMessage(maker, text, { kind: 'error' }),
        signedMessage(maker, text, { kind: 'error' }),
      ]);
      expect(await errorOf(ask())).toMatchObject({
        code: 'internal',
        message: 'The response of a service could not be read.',
      });
    },
  );

  it('ignores what is not signed and no JSON, however often it comes, with one line in the log', async () => {
    const own = new NatsRpc(link, new Signer(secret));
    await answerWith((maker) => {
      const noise = ['', '{', '\ud83d', 'null'].flatMap((text) =>
        ['1/1', '1/2', 'x'].map((part) => signedMessage(maker, text, { part })),
      );
      const unsigned = noise.map(({ data, marks }) => ({ data, marks: { ...marks, 'Atoll-Signature': 'AAAA' } }));
      return [...unsigned, ...unsigned, signedMessage(maker, '{"size":1}'), ...unsigned];
    });
    expect(await own.call(probe.ask, {}, systemContext('spec'))).toEqual({ size: 1 });
    expect(logged).toEqual([expect.stringContaining('An answer to probe.ask was ignored')]);
    await own.onApplicationShutdown();
  });

  it.each([[['2/2']], [['1/3', '3/3']], [['1/2', '1/2']], [['1/2', '2/3']], [['x']], [['0/0']]])(
    'does not put together an answer of which a part is missing: %j',
    async (parts) => {
      await answerWith((maker) => signedChain(maker, parts, '{}'));
      expect((await errorOf(ask(50))).code).toBe('deadline_exceeded');
    },
  );

  it('takes no more than 64 MiB, whatever a sender says', async () => {
    const parts = Array.from({ length: 1100 }, (_, index) => `${index + 1}/9999`);
    await answerWith((maker) => signedChain(maker, parts, 'x'.repeat(maxPayload - 1024)));
    expect((await errorOf(ask(50_000))).code).toBe('internal');
  });

  it('tells of a request that is larger than this NATS takes', async () => {
    expect((await errorOf(ask(5_000, 'x'.repeat(maxPayload)))).code).toBe('payload_too_large');
  });

  it('fits the parts of a long answer to this NATS', async () => {
    const service = await startProbe(new NatsStrategy({ service: 'probe', link, secret }));
    service.answer = () => Promise.resolve({ text: 'x'.repeat(1_000_000) });
    expect(String((await ask())['text'])).toHaveLength(1_000_000);
    await service.stop();
  });

  it('stops sending a long answer when its receiver has gone', async () => {
    const service = await startProbe(new NatsStrategy({ service: 'probe', link, secret }));
    const leaving = NatsLink.open({ servers: server.url });
    await leaving.connected();
    service.answer = async () => {
      await leaving.close();
      return { text: 'x'.repeat(1_000_000) };
    };
    const gone = new NatsRpc(leaving, new Signer(secret)).call(probe.ask, {}, systemContext('spec'));
    expect((await errorOf(gone)).code).toBe('unavailable');
    await until(() => logged.some((line) => line.includes('could not be sent')));
    await service.stop();
  });

  it('is not ready where NATS refuses its subscriptions, and says how many', async () => {
    const deaf = NatsLink.open({ servers: server.url.replace('//', '//deaf:any@') });
    const strategy = new NatsStrategy({ service: 'probe', link: deaf, secret });
    const service = await startProbe(strategy);
    await until(() => !strategy.readiness().ready);
    expect(strategy.readiness().reason).toBe('1 of 1 operations are not subscribed');
    await service.stop();
    await deaf.close();
  });

  it('sheds calls beyond 10,000 that wait', async () => {
    const silence = other.subscribe(specSubject(probe.ask), { callback: () => undefined });
    await other.flush();
    const waiting = Array.from({ length: 10_000 }, () => errorOf(ask(2_000)));
    const shed = await errorOf(ask(600_000));
    expect(shed.code).toBe('unavailable');
    expect(new Set((await Promise.all(waiting)).map(({ code }) => code))).toEqual(new Set(['deadline_exceeded']));
    silence.unsubscribe();
  });
});

/** Signed one after the other, each part bound to the one before. */
function signedChain(maker: Maker, parts: readonly string[], text: string): Captured[] {
  let previous = maker.request;
  return parts.map((part) => {
    const message = signedMessage(maker, text, { part, previous });
    previous = message.marks['Atoll-Signature'] ?? '';
    return message;
  });
}
