import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { startNats, type NatsServer } from '@atoll/testing';
import { systemContext } from './call-context.js';
import { InProcessBus } from './in-process-bus.js';
import { InProcessStrategy } from './in-process-strategy.js';
import { NatsLink } from './nats-link.js';
import { NatsStrategy } from './nats-strategy.js';
import { probe, startProbe, type Reply } from './probe-fixture.js';
import { RpcModule } from './rpc-module.js';
import { Rpc } from './rpc.js';
import { specSecret as secret } from './transports-fixture.js';

/** What uses the bus in an application: its class is all that it knows of it. */
@Injectable()
class Asker {
  constructor(private readonly rpc: Rpc) {}

  ask(): Promise<Reply> {
    return this.rpc.call(probe.ask, { size: 1 }, systemContext('spec'));
  }
}

@Module({ providers: [Asker] })
class FeatureModule {}

function startApplication(bus: DynamicModule) {
  class ApplicationModule {}
  return NestFactory.createApplicationContext(
    { module: ApplicationModule, imports: [bus, FeatureModule] },
    { abortOnError: false },
  );
}

describe('an application with the bus', () => {
  let server: NatsServer;
  beforeAll(async () => {
    server = await startNats();
  });
  afterAll(() => server.stop());

  it('asks within its process', async () => {
    const bus = new InProcessBus();
    const service = await startProbe(new InProcessStrategy({ service: 'probe', bus }));
    const application = await startApplication(RpcModule.forMemory({ bus }));
    expect(application.get(Rpc).status()).toEqual({ ready: true });
    expect(await application.get(Asker).ask()).toEqual({ size: 1 });
    await application.close();
    await service.stop();
  });

  it('asks over NATS by the link of its process, which it leaves open and others may inject', async () => {
    const link = NatsLink.open({ servers: server.url });
    const service = await startProbe(new NatsStrategy({ service: 'probe', link, secret }));
    const application = await startApplication(RpcModule.forNats({ link, secret }));
    expect(application.get(NatsLink)).toBe(link);
    expect(application.get(Rpc).status()).toEqual({ ready: true });
    expect(await application.get(Asker).ask()).toEqual({ size: 1 });
    await application.close();
    expect(link.status()).toEqual({ ready: true });
    await service.stop();
    await link.close();
  });
});
