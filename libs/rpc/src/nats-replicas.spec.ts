import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from '@nats-io/transport-node';
import { startNats, type NatsServer } from '@atoll/testing';
import { systemContext } from './call-context.js';
import { headersOf, signedMessage } from './hostile-fixture.js';
import { NatsLink } from './nats-link.js';
import { NatsRpc } from './nats-rpc.js';
import { NatsStrategy } from './nats-strategy.js';
import { probe, startProbe, type Probe } from './probe-fixture.js';
import { Signer, type Secrets } from './signature.js';
import { errorOf, specSecret as secret, specSubject, until } from './transports-fixture.js';

describe('two replicas of a service', () => {
  let server: NatsServer;
  let link: NatsLink;
  let rpc: NatsRpc;
  const ask = (size: number) =>
    rpc.call(probe.ask, { size: size % 1000 }, systemContext('spec', { deadlineMs: 60_000 }));
  const startReplica = async (own: Secrets = secret) => {
    const ownLink = NatsLink.open({ servers: server.url });
    const replica = await startProbe(new NatsStrategy({ service: 'probe', link: ownLink, secret: own }));
    const { stop } = replica;
    return Object.assign(replica, { stop: () => stop().then(() => ownLink.close()) });
  };

  beforeAll(async () => {
    server = await startNats();
    link = NatsLink.open({ servers: server.url });
    rpc = new NatsRpc(link, new Signer(secret));
    await until(() => rpc.status().ready);
  });
  afterAll(async () => {
    await link.close();
    await server.stop();
  });

  it('share the requests: each is handled by one, and both get some', async () => {
    const replicas = await Promise.all([startReplica(), startReplica()]);
    await Promise.all(Array.from({ length: 300 }, (_, index) => ask(index)));
    const handled = replicas.map((replica) => replica.handled);
    expect(handled[0]).toBeGreaterThan(0);
    expect(handled[1]).toBeGreaterThan(0);
    expect(Number(handled[0]) + Number(handled[1])).toBe(300);
    await Promise.all(replicas.map((replica) => replica.stop()));
  });

  it('are a queue group by the name of the service: whoever joins it gets a share', async () => {
    const replica = await startReplica();
    const joined = await connect({ servers: server.url });
    let share = 0;
    joined.subscribe(specSubject(probe.ask), {
      queue: 'probe',
      callback: (_error, message) => {
        share += 1;
        const request = message.headers?.get('Atoll-Signature') ?? '';
        const { data, marks } = signedMessage({ secret, service: 'probe', request }, '{"size":0}');
        message.respond(data, { headers: headersOf(marks) });
      },
    });
    await joined.flush();
    await Promise.all(Array.from({ length: 100 }, () => ask(0)));
    expect(share).toBeGreaterThan(0);
    expect(share + replica.handled).toBe(100);
    await joined.close();
    await replica.stop();
  });

  it('answer requests that are signed with their secret, and take none of each other where they have another one', async () => {
    const [replica, other] = await Promise.all([startReplica(), startReplica('a secret of another house')]);
    await Promise.all(Array.from({ length: 100 }, (_, index) => ask(index)));
    expect([replica.handled, other.handled]).toEqual([100, 0]);
    await replica.stop();
    expect(await errorOf(ask(0))).toMatchObject({ code: 'unavailable', details: { retryAfterSeconds: 1 } });
    expect(other.handled).toBe(0);
    await other.stop();
  });

  it('lose no request to one that is frozen, once NATS has noticed', async () => {
    const replica = await startReplica();
    const frozen = connectSocket(server.port, '127.0.0.1');
    frozen.write(`CONNECT {"verbose":false}\r\nSUB ${specSubject(probe.ask)} probe 1\r\n`);
    // It answers no ping, which is all that NATS sees of a process that is frozen.
    frozen.resume();
    await once(frozen, 'close');
    await Promise.all(Array.from({ length: 100 }, (_, index) => ask(index)));
    expect(replica.handled).toBe(100);
    await replica.stop();
    // By its own defaults NATS takes four minutes here.
  }, 120_000);

  it('lose no request while secrets are rotated, one process after the other', async () => {
    const steps: Secrets[] = [
      'the secret of last year',
      ['the secret of last year', secret],
      [secret, 'the secret of last year'],
      secret,
    ];
    for (const [index, after] of steps.entries()) {
      const before = steps[index - 1] ?? after;
      const replicas = await Promise.all([before, after].map((each) => startReplica(each)));
      for (const each of [before, after]) {
        const caller = new NatsRpc(link, new Signer(each));
        await link.flush();
        await Promise.all(Array.from({ length: 20 }, () => caller.call(probe.ask, {}, systemContext('spec'))));
        await caller.onApplicationShutdown();
      }
      expect(replicas.reduce((sum, { handled }) => sum + handled, 0)).toBe(40);
      await Promise.all(replicas.map((replica) => replica.stop()));
    }
  });

  it('lose no request when one after the other is replaced under load', async () => {
    let [first, second] = await Promise.all([startReplica(), startReplica()]);
    const load = startLoad(ask, 20);
    for (let round = 0; round < 3; round += 1) {
      const next = await startReplica();
      for (const replica of [first, second, next]) replica.answer = slowly;
      await load.progress(200);
      await first.stop();
      [first, second] = [second, next];
    }
    await load.progress(200);
    expect(await load.stop()).toEqual([]);
    await Promise.all([first.stop(), second.stop()]);
  });
});

const slowly: Probe['answer'] = async (question) => {
  await delay(Math.random() * 20);
  return { ...question };
};

/** Calls without a pause, `width` at a time, and keeps what failed. */
function startLoad(call: (size: number) => Promise<object>, width: number) {
  const failures: unknown[] = [];
  let done = 0;
  let running = true;
  const workers = Array.from({ length: width }, async () => {
    while (running) {
      await call(done).catch((error: unknown) => failures.push(error));
      done += 1;
    }
  });
  return {
    progress: async (count: number): Promise<void> => {
      const goal = done + count;
      await until(() => done >= goal);
    },
    stop: async (): Promise<unknown[]> => {
      running = false;
      await Promise.all(workers);
      return failures;
    },
  };
}
