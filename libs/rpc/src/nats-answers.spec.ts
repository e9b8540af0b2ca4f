import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { connect, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { startNats, type NatsServer } from '@atoll/testing';
import { systemContext } from './call-context.js';
import { headersOf, messagesOf, type Captured, type Maker } from './hostile-fixture.js';
import { NatsLink } from './nats-link.js';
import { NatsRpc } from './nats-rpc.js';
import { probe } from './probe-fixture.js';
import { Signer } from './signature.js';
import { errorOf, specSecret as secret, specSubject, until } from './transports-fixture.js';

const partBytes = 1024;
/** Of an answer in one message, and of one in three parts. */
const lengths = { single: 1, multi: 2 * partBytes + 1 };
type Length = keyof typeof lengths;
const isMulti = (length: Length): boolean => length === 'multi';

describe.each<Length>(['single', 'multi'])('an answer (%s-part) on a NATS where somebody else sends too', (length) => {
  let server: NatsServer;
  let link: NatsLink;
  let rpc: NatsRpc;
  let network: NatsConnection;
  let errors: string[];
  const text = 'x'.repeat(lengths[length]);
  const genuine = JSON.stringify({ text });
  const forged = JSON.stringify({ text: 'y'.repeat(text.length) });
  const ask = (deadlineMs = 60_000) => rpc.call(probe.ask, {}, systemContext('spec', { deadlineMs }));

  beforeAll(async () => {
    server = await startNats();
    link = NatsLink.open({ servers: server.url, name: 'spec' });
    network = await connect({ servers: server.url });
    await link.connected();
  });
  afterAll(async () => {
    await link.close();
    await network.close();
    await server.stop();
  });
  beforeEach(async () => {
    rpc = new NatsRpc(link, new Signer(secret));
    await link.flush();
    errors = [];
    jest.spyOn(Logger.prototype, 'error').mockImplementation((line: unknown) => void errors.push(JSON.stringify(line)));
  });
  afterEach(async () => {
    await rpc.onApplicationShutdown();
    jest.restoreAllMocks();
  });

  const makerOf = (request: Msg): Maker => ({
    secret,
    service: 'probe',
    request: request.headers?.get('Atoll-Signature') ?? '',
    partBytes,
  });
  function send({ reply: inbox = '' }: Pick<Msg, 'reply'>, messages: readonly Captured[]): void {
    for (const { data, marks, reply } of messages)
      network.publish(inbox, data, { headers: headersOf(marks), ...(reply && { reply }) });
  }
  /**
   * Takes the place of the service for one request: `choose` has the messages of the genuine answer, and says what is
   * sent.
   */
  async function onRequest(
    choose: (messages: Captured[], request: Msg) => Captured[] | Promise<Captured[]>,
  ): Promise<void> {
    const answer = async (request: Msg) =>
      send(request, await choose(await messagesOf({ json: genuine }, makerOf(request)), request));
    // A request whose caller has given up, and that is still on its way, is none of this one's.
    await link.flush();
    network.subscribe(specSubject(probe.ask), { max: 1, callback: (_error, request) => void answer(request) });
    await network.flush();
  }

  it.each<[string, (maker: Maker) => Partial<Maker> | undefined]>([
    ['without a signature', () => undefined],
    ['with another secret', () => ({ secret: 'another secret, guessed' })],
    ['by another service that holds the secret', () => ({ service: 'other' })],
    ['to another request', () => ({ request: 'the signature of another request' })],
  ])('is not taken when it is forged %s, and the genuine one is, with one line in the log', async (_how, change) => {
    await onRequest(async (messages, request) => {
      const maker = makerOf(request);
      const fakes = await messagesOf({ json: forged }, { ...maker, ...change(maker) });
      const unsigned = fakes.map(({ data, marks }) => ({ data, marks: { ...marks, 'Atoll-Signature': '' } }));
      return [...(change(maker) ? fakes : unsigned), ...messages];
    });
    expect(await ask()).toEqual({ text });
    expect(errors).toEqual([
      expect.stringMatching(/An answer to probe.ask was ignored: probe did not sign it for this request/),
    ]);
  });

  it('does not fail because of a forged error', async () => {
    await onRequest((messages) => [
      { data: Buffer.from('{"code":"not_found","message":"No such team."}'), marks: { 'Atoll-Reply': 'error' } },
      ...messages,
    ]);
    expect(await ask()).toEqual({ text });
  });

  it.each<[string, (message: Captured) => Captured]>([
    [
      'its text',
      (message) => ({ ...message, data: Buffer.from(Buffer.from(message.data).toString().replace('x', 'y')) }),
    ],
    ['its kind', ({ marks, ...message }) => ({ ...message, marks: { ...marks, 'Atoll-Reply': 'error' } })],
    [
      'the number of its part',
      ({ marks, ...message }) => ({ ...message, marks: { ...marks, 'Atoll-Part': isMulti(length) ? '1/1' : '1/2' } }),
    ],
    ['where its receipt goes', (message) => ({ ...message, reply: '_INBOX.elsewhere' })],
  ])('is not taken when it was altered: %s', async (_what, alter) => {
    await onRequest(([first, ...others]) => [alter(first!), ...others]);
    expect((await errorOf(ask(200))).code).toBe('deadline_exceeded');
    await onRequest(([first, ...others]) => [alter(first!), first!, ...others]);
    expect(await ask()).toEqual({ text });
  });

  it('is not taken for the answer to a later request, however alike', async () => {
    let kept: Captured[] = [];
    await onRequest((messages) => (kept = messages));
    expect(await ask()).toEqual({ text });
    await onRequest(() => kept);
    expect((await errorOf(ask(200))).code).toBe('deadline_exceeded');
  });

  it('is not taken after the deadline', async () => {
    let arrived = false;
    await onRequest(async (messages, request) => {
      await until(() => arrived);
      network.subscribe(request.reply ?? '', { max: messages.length, callback: () => undefined });
      return messages;
    });
    expect((await errorOf(ask(50))).code).toBe('deadline_exceeded');
    arrived = true;
    await network.flush();
    await onRequest((messages) => messages);
    expect(await ask()).toEqual({ text });
    expect(errors).toEqual([]);
  });

  it('is taken once when it comes doubled', async () => {
    await onRequest((messages) => messages.flatMap((message) => [message, message]));
    expect(await ask()).toEqual({ text });
    await onRequest((messages) => [...messages, ...messages]);
    expect(await ask()).toEqual({ text });
  });

  it('is taken in the order of its parts, or not at all', async () => {
    await onRequest((messages) => messages.toReversed());
    if (isMulti(length)) expect((await errorOf(ask(200))).code).toBe('deadline_exceeded');
    else expect(await ask()).toEqual({ text });
    await onRequest((messages) => [...messages.toReversed(), ...messages]);
    expect(await ask()).toEqual({ text });
  });

  it('is the answer of one replica, where a copied request was answered by two', async () => {
    const [first, second] = ['a', 'b'].map((letter) => letter.repeat(text.length));
    await onRequest(async (_messages, request) => {
      const [one, two] = await Promise.all(
        [first, second].map((each) => messagesOf({ json: JSON.stringify({ text: each }) }, makerOf(request))),
      );
      return one!.flatMap((message, index) => [message, two![index]!]);
    });
    expect(await ask()).toEqual({ text: first });
  });
});
