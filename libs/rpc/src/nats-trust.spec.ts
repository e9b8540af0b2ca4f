import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { connect, createInbox, headers, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import type { CallContext } from '@atoll/contracts';
import { startNats, type NatsServer } from '@atoll/testing';
import { systemContext } from './call-context.js';
import { seal as sealBy } from './nats-envelope.js';
import { NatsLink } from './nats-link.js';
import { NatsRpc } from './nats-rpc.js';
import { NatsStrategy } from './nats-strategy.js';
import { pinged, probe, startProbe, type Probe } from './probe-fixture.js';
import { Signer } from './signature.js';
import { specSecret, specSubject, until } from './transports-fixture.js';

const subject = specSubject(probe.ask);
const signer = new Signer(specSecret);
const payload = JSON.stringify({ size: 1 });

describe('a service on a NATS that others can reach', () => {
  let server: NatsServer;
  let link: NatsLink;
  let service: Probe;
  let stranger: NatsConnection;
  let inbox: string;
  /** What the service answered in the inbox of this spec. */
  let heard: Msg[];
  let logged: string[];

  beforeAll(async () => {
    server = await startNats();
    link = NatsLink.open({ servers: server.url });
    stranger = await connect({ servers: server.url });
    stranger.subscribe('_INBOX.>', {
      callback: (_error, answer) => void (answer.subject === inbox && heard.push(answer)),
    });
  });
  afterAll(async () => {
    await stranger.close();
    await link.close();
    await server.stop();
  });
  beforeEach(async () => {
    logged = [];
    for (const level of ['warn', 'error'] as const)
      jest
        .spyOn(Logger.prototype, level)
        .mockImplementation((line: unknown) => void logged.push(`${level}: ${JSON.stringify(line)}`));
    inbox = createInbox();
    heard = [];
    service = await startProbe(new NatsStrategy({ service: 'probe', link, secret: specSecret }));
  });
  afterEach(async () => {
    await service.stop();
    jest.restoreAllMocks();
  });

  /** Headers of a request that this signer would sign. */
  function seal(by: Signer, to: string, reply: string, context: CallContext, text: string): MsgHdrs {
    return sealBy(by, to, reply, context, text).headers;
  }
  /** Publishes as anybody can who reaches NATS. */
  function publish(sealed: MsgHdrs | undefined, text = payload, reply = inbox, to = subject): void {
    stranger.publish(to, text, { reply, ...(sealed && { headers: sealed }) });
  }
  /** Waits until the service has seen all that was published, by the answer to a genuine request. */
  async function settled(): Promise<void> {
    const reply = createInbox();
    const answers = stranger.subscribe(reply, { max: 1 });
    publish(seal(signer, subject, reply, systemContext('spec'), payload), payload, reply);
    for await (const answer of answers) expect(answer.json()).toEqual({ size: 1 });
    service.handled -= 1;
  }
  function changed(sealed: MsgHdrs, change: (context: string, signature: string) => [string, string]): MsgHdrs {
    const [context, signature] = change(sealed.get('Atoll-Context'), sealed.get('Atoll-Signature'));
    const altered = headers();
    altered.set('Atoll-Context', context);
    altered.set('Atoll-Signature', signature);
    return altered;
  }

  it('answers a request that holds a signature of the platform', async () => {
    publish(seal(signer, subject, inbox, systemContext('spec'), payload));
    await settled();
    expect(heard.map((answer) => answer.json())).toEqual([{ size: 1 }]);
  });

  it('sends a reply of up to 512 KiB whole, and a longer one in parts', async () => {
    const frame = JSON.stringify({ size: 1, text: '' }).length;
    for (const [bytes, parts] of [
      [512 * 1024, null],
      [512 * 1024 + 1, '1/2'],
    ] as const) {
      service.answer = (question) => Promise.resolve({ ...question, text: 'x'.repeat(bytes - frame) });
      const answers = stranger.subscribe(inbox, { max: 1 });
      publish(seal(signer, subject, inbox, systemContext('spec'), payload));
      for await (const answer of answers) expect(answer.headers?.get('Atoll-Part') || null).toBe(parts);
      inbox = createInbox();
    }
  });

  it('ignores requests without a signature, or signed with another secret, and says so in one line', async () => {
    const forged = seal(new Signer('another secret, guessed'), subject, inbox, systemContext('teams'), payload);
    for (const sealed of [undefined, forged, undefined]) publish(sealed);
    await settled();
    expect([service.handled, heard]).toEqual([0, []]);
    expect(logged).toEqual([
      expect.stringMatching(
        /^error: .*A request for probe.ask was ignored: no ATOLL_BUS_SECRET of this process signed it/,
      ),
    ]);
  });

  it('ignores a request of which anything was changed: caller, deadline, payload, inbox, subject', async () => {
    const sealed = seal(signer, subject, inbox, systemContext('spec'), payload);
    publish(changed(sealed, (context, signature) => [context.replace('"spec"', '"root"'), signature]));
    publish(
      changed(sealed, (context, signature) => [context.replace(/"deadlineAtMs":1/, '"deadlineAtMs":2'), signature]),
    );
    publish(sealed, JSON.stringify({ size: 2 }));
    publish(sealed, payload, createInbox());
    publish(seal(signer, 'probe.other', inbox, systemContext('spec'), payload));
    await settled();
    expect([service.handled, heard]).toEqual([0, []]);
  });

  it('ignores a request after its deadline, though its signature is genuine', async () => {
    publish(seal(signer, subject, inbox, systemContext('spec', { deadlineMs: -1 }), payload));
    await settled();
    expect([service.handled, heard]).toEqual([0, []]);
    expect(logged).toEqual([expect.stringMatching(/^warn: .*it came after its deadline by the clock of this host/)]);
  });

  it('answers in inboxes alone, whatever subject a request names', async () => {
    const reached: string[] = [];
    const elsewhere = stranger.subscribe('elsewhere.>', {
      callback: (_error, { subject: to }) => void reached.push(to),
    });
    const to = 'elsewhere.PURGE';
    publish(seal(signer, subject, to, systemContext('spec'), payload), payload, to);
    await settled();
    expect([service.handled, reached]).toEqual([0, []]);
    elsewhere.unsubscribe();
  });

  it('handles a request once, however often it is copied within its deadline', async () => {
    const sealed = seal(signer, subject, inbox, systemContext('spec'), payload);
    const respelt = changed(sealed, (context, signature) => [` ${context} `, `${signature}=`]);
    for (const copy of [sealed, sealed, respelt, sealed]) publish(copy);
    await settled();
    expect(service.handled).toBe(1);
    expect(logged.join()).toContain('it is a copy of one that came before');
  });

  it('does not act for a message that nobody waits to see answered', async () => {
    stranger.publish(subject, payload, { headers: seal(signer, subject, '', systemContext('spec'), payload) });
    await stranger.flush();
    await link.flush();
    expect(service.handled).toBe(0);
  });

  it('hears no broadcast of a stranger, nor a copy of an old one', async () => {
    const rpc = new NatsRpc(link, signer);
    const heard: string[] = [];
    const stop = rpc.listen(pinged, ({ key }) => void heard.push(key));
    await link.flush();
    stranger.publish('broadcast.probe.pinged', JSON.stringify({ key: 'forged' }));
    // A copy of one whose time is over.
    const old = JSON.stringify({ key: 'old' });
    const over = { ...systemContext('broadcast'), deadlineAtMs: Date.now() - 1 };
    stranger.publish('broadcast.probe.pinged', old, {
      headers: seal(signer, 'broadcast.probe.pinged', '', over, old),
    });
    await stranger.flush();
    rpc.publish(pinged, { key: 'genuine' });
    await until(() => heard.length > 0);
    expect(heard).toEqual(['genuine']);
    stop();
    await rpc.onApplicationShutdown();
  });
});
