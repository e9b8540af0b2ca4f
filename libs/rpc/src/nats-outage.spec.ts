import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { startNats, type NatsServer } from '@atoll/testing';
import { systemContext } from './call-context.js';
import { NatsLink } from './nats-link.js';
import { NatsRpc } from './nats-rpc.js';
import { NatsStrategy } from './nats-strategy.js';
import { pinged, probe, startProbe, type Probe } from './probe-fixture.js';
import { Signer } from './signature.js';
import { errorOf, specSecret as secret, until } from './transports-fixture.js';

/** After so many attempts the client would give up by default. */
const defaultAttempts = 10;

describe('when NATS goes away', () => {
  let server: NatsServer;
  let clientLink: NatsLink;
  let serviceLink: NatsLink;
  let rpc: NatsRpc;
  let strategy: NatsStrategy;
  let service: Probe;
  const ask = (deadlineMs = 600_000) => rpc.call(probe.ask, { size: 1 }, systemContext('spec', { deadlineMs }));
  const ready = () => rpc.status().ready && strategy.readiness().ready;

  beforeEach(async () => {
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    server = await startNats();
    const options = { servers: server.url, reconnectWaitMs: 10 };
    clientLink = NatsLink.open(options);
    serviceLink = NatsLink.open(options);
    rpc = new NatsRpc(clientLink, new Signer(secret));
    strategy = new NatsStrategy({ service: 'probe', link: serviceLink, secret });
    service = await startProbe(strategy);
    await until(ready);
  });
  afterEach(async () => {
    await service.stop();
    await clientLink.close();
    await serviceLink.close();
    await server.stop();
    jest.restoreAllMocks();
  });

  it('says so, tells callers at once, and serves again when it is back, after more attempts than the client makes by default', async () => {
    const attempts = countAttempts(serviceLink);
    await server.kill();
    await until(() => !rpc.status().ready && !strategy.readiness().ready);
    expect(rpc.status()).toEqual({ ready: false, reason: 'NATS is not connected' });
    expect((await errorOf(ask())).code).toBe('unavailable');
    await until(() => attempts.count > 2 * defaultAttempts);
    await server.restart();
    await until(ready);
    // What the service has subscribed to is sent, and may still be on its way.
    await serviceLink.flush();
    expect(await ask()).toEqual({ size: 1 });
  });

  it('tells the calls that were under way at once, since their answers are lost', async () => {
    let finish = (): void => undefined;
    service.answer = () => new Promise((resolve) => (finish = () => resolve({})));
    const lost = errorOf(ask());
    await until(() => service.handled === 1);
    await server.kill();
    expect((await lost).code).toBe('unavailable');
    finish();
  });

  it('hears broadcasts again when it is back', async () => {
    const heard: string[] = [];
    rpc.listen(pinged, ({ key }) => void heard.push(key));
    await server.kill();
    await until(() => !rpc.status().ready);
    rpc.publish(pinged, { key: 'lost' });
    await server.restart();
    await until(ready);
    rpc.publish(pinged, { key: 'heard' });
    await until(() => heard.length > 0);
    expect(heard).toEqual(['heard']);
  });

  it('keeps to the deadline while it is frozen, and goes on when it thaws', async () => {
    await server.pause();
    expect((await errorOf(ask(100))).code).toBe('deadline_exceeded');
    server.resume();
    expect(await ask()).toEqual({ size: 1 });
  });
});

describe('when NATS is not there at the start', () => {
  it('starts all the same, not ready, and serves once it is', async () => {
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const server = await startNats();
    await server.kill();
    const link = NatsLink.open({ servers: server.url, reconnectWaitMs: 10, startupWaitMs: 20 });
    const strategy = new NatsStrategy({ service: 'probe', link, secret });
    const service = await startProbe(strategy);
    const rpc = new NatsRpc(link, new Signer(secret));
    expect(strategy.readiness()).toEqual({ ready: false, reason: 'NATS is not connected' });
    expect((await errorOf(rpc.call(probe.ask, {}, systemContext('spec')))).code).toBe('unavailable');

    await server.restart();
    await until(() => strategy.readiness().ready);
    await link.flush();
    expect(await rpc.call(probe.ask, { size: 2 }, systemContext('spec'))).toEqual({ size: 2 });
    await service.stop();
    await link.close();
    await server.stop();
    jest.restoreAllMocks();
  });

  it('can be closed without ever having been connected', async () => {
    const link = NatsLink.open({ servers: '127.0.0.1:9', reconnectWaitMs: 10 });
    const connected = link.connected();
    await link.close();
    await expect(connected).rejects.toThrow('closed before it was connected');
  });
});

describe('when NATS refuses the password', () => {
  it.each([{ since: 'from the start' }, { since: 'after a restart' }])(
    'says so $since, as reason and once in the log, and connects once it is accepted',
    async ({ since }) => {
      const lines: string[] = [];
      jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: string) => void lines.push(line));
      jest.spyOn(Logger.prototype, 'error').mockImplementation((line: string) => void lines.push(line));
      const server = await startNats({ configuration: 'authorization { user: teams, password: current }' });
      let attempts = 0;
      let pass = since === 'from the start' ? 'former' : 'current';
      const authenticator = () => {
        attempts += 1;
        return { user: 'teams', pass };
      };
      const link = NatsLink.open({ servers: server.url, reconnectWaitMs: 10, connection: { authenticator } });
      if (since === 'after a restart') {
        await until(() => link.status().ready);
        pass = 'former';
        await server.restart();
      }
      attempts = 0;
      await until(() => attempts > 3);
      const reason = 'NATS refuses the user or password';
      await until(() => link.status().reason === reason);
      expect(lines.filter((line) => !line.startsWith('Lost'))).toEqual([
        `${reason}; retrying. Set the same password on both sides, and restart the process that has the old password`,
      ]);
      await server.kill();
      await until(() => link.status().reason === 'NATS is not connected');
      await server.restart();
      await until(() => link.status().reason === reason);
      pass = 'current';
      await until(() => link.status().ready);
      await link.close();
      await server.stop();
      jest.restoreAllMocks();
    },
  );

  it('names the setting that has it, and says so no longer once nothing answers', async () => {
    const lines: string[] = [];
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: string) => void lines.push(line));
    jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const server = await startNats({ configuration: 'authorization { user: teams, password: current }' });
    const servers = server.url.replace('//', '//teams:former@');
    const link = NatsLink.open({ servers, reconnectWaitMs: 10 });
    await until(() => link.status().reason === 'NATS refuses the user or password of NATS_URL');
    await server.kill();
    await until(() => lines.length > 0);
    expect(link.status().reason).toBe('NATS is not connected');
    expect(lines).toEqual([expect.stringMatching(/^Cannot connect to NATS; retrying: /)]);
    await link.close();
    await server.stop();
    jest.restoreAllMocks();
  });
});

function countAttempts(link: NatsLink): { count: number } {
  const attempts = { count: 0 };
  void (async () => {
    for await (const event of (await link.connected()).status()) if (event.type === 'reconnecting') attempts.count += 1;
  })();
  return attempts;
}
