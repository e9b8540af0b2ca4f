import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Module, type INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createApiKey } from '@atoll/api-keys';
import { credentials, type Credential, type KeyDigest } from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { natsTransport, type Transport } from '@atoll/service';
import { allowErrors, expectErrors, startNats, type NatsServer } from '@atoll/testing';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';

const right = 'the secret of this house';

/** The teams service, as far as the gateway asks it who a key belongs to: every key is live. */
@Controller()
class EveryKey implements Pick<Handlers<typeof credentials>, 'verify'> {
  @Handle(credentials.verify)
  verify(_key: KeyDigest): Promise<Credential> {
    const [key_id, user_id] = ['01890000-0000-7000-8000-00000000000a', '01890000-0000-7000-8000-00000000000b'];
    return Promise.resolve({
      key_id,
      user_id,
      scope: 'user',
      platform_admin: false,
      timezone: 'UTC',
      teams: [],
      expiry_date: null,
      ip_whitelist: '',
    });
  }
}

@Module({ controllers: [EveryKey] })
class TeamsModule {}

describe('a gateway whose ATOLL_BUS_SECRET is not that of the services', () => {
  let nats: NatsServer;
  let transports: Transport[];
  let teams: INestMicroservice;
  let gateway: GatewayUnderTest;

  const open = (name: string, secrets: string): Transport => {
    const transport = natsTransport({ servers: nats.url, name, secrets });
    transports.push(transport);
    return transport;
  };
  async function start(secrets: string): Promise<void> {
    const { rpc, checks } = open('gateway', secrets);
    gateway = await startGateway({ rpc, readinessChecks: checks });
  }
  const readiness = () => gateway.call('GET', '/readyz');
  async function untilReadiness(detail: RegExp): Promise<void> {
    while (!detail.test(String((await readiness()).body.detail)))
      await new Promise((resolve) => setTimeout(resolve, 20));
  }

  beforeEach(async () => {
    nats = await startNats();
    transports = [];
    const strategy = open('teams', right).server({ service: 'teams' });
    teams = await NestFactory.createMicroservice(TeamsModule, { strategy, abortOnError: false });
    await teams.listen();
  });
  afterEach(async () => {
    await gateway.close();
    await teams.close();
    for (const transport of transports) await transport.close();
    await nats.stop();
  });

  it('says 503 of a live key, and not that it is not valid, is not ready, and both sides log why', async () => {
    expectErrors(
      /Every process that answered, of teams, signs with another ATOLL_BUS_SECRET/,
      /A process of gateway signs with another ATOLL_BUS_SECRET/,
    );
    // Where the teams service asks again before this ends.
    allowErrors(
      /A process of teams signs with another ATOLL_BUS_SECRET/,
      /Every process that answered, of gateway, signs with another ATOLL_BUS_SECRET/,
    );
    await start('the secret of another house');
    const { status, body } = await gateway.call('GET', '/api/user/profile', { key: createApiKey() });
    expect([status, body.code, body.detail]).toEqual([
      503,
      'unavailable',
      'Credentials cannot be checked at the moment.',
    ]);
    await untilReadiness(/bus secret: ATOLL_BUS_SECRET differs from that of teams/);
    expect((await readiness()).status).toBe(503);
  });

  it('is ready with the secret of the services, and says of a key what the teams service says', async () => {
    await start(`${right}, the secret of next year`);
    await untilReadiness(/undefined/);
    expect((await gateway.call('GET', '/api/nowhere', { key: createApiKey() })).status).toBe(404);
  });
});
