import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { connect, createInbox, headers, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import { AppError } from '@atoll/errors';
import { startNats, type NatsServer } from '@atoll/testing';
import { systemContext } from './call-context.js';
import { seal } from './nats-envelope.js';
import { NatsLink } from './nats-link.js';
import { NatsRpc } from './nats-rpc.js';
import { NatsStrategy } from './nats-strategy.js';
import { pinged, probe, startProbe, type Probe } from './probe-fixture.js';
import { Signer } from './signature.js';
import { specSecret, until } from './transports-fixture.js';

const { subject } = probe.ask;
const signer = new Signer(specSecret);
const payload = JSON.stringify({ size: 1 });

describe('a service on a NATS that others can reach', () => {
  let server: NatsServer;
  let link: NatsLink;
  let service: Probe;
  let stranger: NatsConnection;
  let inbox: string;
  let warned: string[];

  beforeAll(async () => {
    server = await startNats();
    link = NatsLink.open({ servers: server.url });
    service = await startProbe(new NatsStrategy({ service: 'probe', link, secret: specSecret }));
    stranger = await connect({ servers: server.url });
  }, 120_000);
  afterAll(async () => {
    await stranger.close();
    await service.stop();
    await link.close();
    await server.stop();
  });
  beforeEach(() => {
    warned = [];
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((...words: unknown[]) => void warned.push(words.join(' ')));
    inbox = createInbox();
    service.handled = 0;
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** Publishes as anybody can who reaches NATS, and reads what comes back. */
  async function publish(sealed: MsgHdrs | undefined, text = payload, reply = inbox, to = subject): Promise<unknown> {
    const answers = stranger.subscribe(reply, { max: 1 });
    stranger.publish(to, text, { reply, ...(sealed && { headers: sealed }) });
    for await (const answer of answers) return read(answer);
    return undefined;
  }
  function read(answer: Msg): unknown {
    return answer.headers?.get('Atoll-Reply') === 'error' ? AppError.fromWire(answer.json()) : answer.json();
  }
  function changed(sealed: MsgHdrs, change: (context: string, signature: string) => [string, string]): MsgHdrs {
    const [context, signature] = change(sealed.get('Atoll-Context'), sealed.get('Atoll-Signature'));
    const altered = headers();
    altered.set('Atoll-Context', context);
    altered.set('Atoll-Signature', signature);
    return altered;
  }

  it('answers a request that holds a signature of the platform', async () => {
    const sealed = seal(signer, subject, inbox, systemContext('spec'), payload);
    expect(await publish(sealed)).toEqual({ size: 1 });
  });

  it('sends a reply of up to 512 KiB whole, and a longer one in parts', async () => {
    const { answer: echo } = service;
    const frame = JSON.stringify({ size: 1, text: '' }).length;
    for (const [bytes, parts] of [
      [512 * 1024, null],
      [512 * 1024 + 1, '1/2'],
    ] as const) {
      service.answer = (question) => Promise.resolve({ ...question, text: 'x'.repeat(bytes - frame) });
      const answers = stranger.subscribe(inbox, { max: 1 });
      stranger.publish(subject, payload, { reply: inbox, headers: seal(signer, subject, inbox, systemContext('spec'), payload) });
      for await (const answer of answers) expect(answer.headers?.get('Atoll-Part') || null).toBe(parts);
      inbox = createInbox();
    }
    service.answer = echo;
  });

  it('refuses a request without a signature, or signed with another secret', async () => {
    const forged = seal(new Signer('another secret, guessed'), subject, inbox, systemContext('teams'), payload);
    for (const sealed of [undefined, forged]) {
      expect(await publish(sealed)).toMatchObject({ code: 'unauthenticated', message: 'The request is not signed by this platform.' });
    }
    expect(service.handled).toBe(0);
    expect(warned).toHaveLength(2);
  });

  it('answers a stranger in an inbox alone, and says nothing to any other subject that the stranger names', async () => {
    const heard: string[] = [];
    const elsewhere = stranger.subscribe('elsewhere.>', { callback: (_error, { subject: to }) => void heard.push(to) });
    stranger.publish(subject, '{}', { reply: 'elsewhere.PURGE' });
    expect(await publish(undefined)).toMatchObject({ code: 'unauthenticated' });
    expect([warned.length, heard]).toEqual([2, []]);
    elsewhere.unsubscribe();
  });

  it('refuses a request of which anything was changed: caller, deadline, payload, inbox, subject', async () => {
    const sealed = seal(signer, subject, inbox, systemContext('spec'), payload);
    const otherCaller = changed(sealed, (context, signature) => [context.replace('"spec"', '"root"'), signature]);
    const laterDeadline = changed(sealed, (context, signature) => [context.replace(/"deadlineAtMs":1/, '"deadlineAtMs":2'), signature]);
    const elsewhere = seal(signer, 'probe.other', inbox, systemContext('spec'), payload);
    const answers = [
      await publish(otherCaller),
      await publish(laterDeadline),
      await publish(sealed, JSON.stringify({ size: 2 })),
      await publish(sealed, payload, createInbox()),
      await publish(elsewhere),
    ];
    for (const answer of answers) expect(answer).toMatchObject({ code: 'unauthenticated' });
    expect(service.handled).toBe(0);
  });

  it('refuses a request after its deadline, though its signature is genuine', async () => {
    const sealed = seal(signer, subject, inbox, systemContext('spec', { deadlineMs: -1 }), payload);
    expect(await publish(sealed)).toMatchObject({ code: 'deadline_exceeded' });
    expect(service.handled).toBe(0);
  });

  it('handles a request once, however often it is copied within its deadline', async () => {
    const sealed = seal(signer, subject, inbox, systemContext('spec'), payload);
    await publish(sealed);
    const respelt = changed(sealed, (context, signature) => [` ${context} `, `${signature}=`]);
    for (const copy of [sealed, respelt]) stranger.publish(subject, payload, { reply: inbox, headers: copy });
    await until(() => warned.length === 2);
    expect(service.handled).toBe(1);
  });

  it('does not act for a message that nobody waits to see answered', async () => {
    stranger.publish(subject, payload, { headers: seal(signer, subject, '', systemContext('spec'), payload) });
    await stranger.flush();
    await link.flush();
    expect(service.handled).toBe(0);
  });

  it('hears no broadcast of a stranger', async () => {
    const rpc = new NatsRpc(link, signer);
    const heard: string[] = [];
    const stop = rpc.listen(pinged, ({ key }) => void heard.push(key));
    await link.flush();
    stranger.publish('broadcast.probe.pinged', JSON.stringify({ key: 'forged' }));
    await stranger.flush();
    rpc.publish(pinged, { key: 'genuine' });
    await until(() => heard.length > 0);
    expect(heard).toEqual(['genuine']);
    stop();
    await rpc.onApplicationShutdown();
  });
});
