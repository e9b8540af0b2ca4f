import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { connect, createInbox, headers } from '@nats-io/transport-node';
import { startNats, timeoutFactor, type NatsServer } from '@atoll/testing';
import { NatsLink } from './nats-link.js';
import { SecretCheck } from './secret-check.js';
import type { Secrets } from './signature.js';
import { until } from './transports-fixture.js';

const right = 'the secret of this year';
const wrong = 'the secret of another house';
const old = 'the secret of last year';

describe('whether a process shares its secret with the others', () => {
  let server: NatsServer;
  let opened: { link: NatsLink; check: SecretCheck }[];
  let errors: string[];

  beforeAll(async () => {
    server = await startNats();
  });
  afterAll(() => server.stop());
  beforeEach(() => {
    opened = [];
    errors = [];
    jest
      .spyOn(Logger.prototype, 'error')
      .mockImplementation((line: unknown) => void errors.push((line as { message: string }).message));
  });
  afterEach(async () => {
    for (const process of opened) await stop(process.check);
    jest.restoreAllMocks();
  });

  /** The others answer sooner, and are not asked again meanwhile, however busy the machine is. */
  const patient = { answerWindowMs: 500 * timeoutFactor, everyMs: 120_000 };

  async function start(name: string, secret: Secrets, pace = patient): Promise<SecretCheck> {
    const link = NatsLink.open({ servers: server.url, name });
    const check = new SecretCheck(link, secret, pace);
    opened.push({ link, check });
    await link.connected();
    await link.flush();
    return check;
  }
  async function stop(check: SecretCheck): Promise<void> {
    const { link } = opened.find((process) => process.check === check)!;
    await check.close();
    await link.close();
  }
  const unknown = 'other processes have not answered yet whether they share ATOLL_BUS_SECRET';
  const concluded = (...checks: SecretCheck[]) => until(() => checks.every((check) => check.reason() !== unknown));

  it('is not known at the start, then shown by any process of another service', async () => {
    const teams = await start('teams', right);
    expect(teams.reason()).toBe(unknown);
    const gateway = await start('gateway', right);
    await concluded(teams, gateway);
    expect([teams.reason(), gateway.reason(), errors]).toEqual([null, null, []]);
  });

  it('does not matter to the only one', async () => {
    const first = await start('teams', right);
    const replica = await start('teams', right);
    await concluded(first, replica);
    expect([first.reason(), replica.reason(), errors]).toEqual([null, null, []]);
  });

  it.each<[string, string[]]>([
    ['gateway', ['gateway']],
    ['gateway', ['gateway', 'gateway']],
    ['teams', ['teams']],
    ['teams', ['teams', 'teams']],
  ])(
    'makes each process of %s not ready that has another one, and no other, with a line in the log of both sides',
    async (name, misled) => {
      const others = await Promise.all(
        ['gateway', 'teams', 'billing', 'gpuaas'].filter((other) => other !== name).map((other) => start(other, right)),
      );
      await concluded(...others);
      const wrongs = await Promise.all(misled.map((each) => start(each, wrong)));
      await concluded(...wrongs);
      await until(() => errors.length >= misled.length + 3);
      for (const check of wrongs)
        expect(check.reason()).toMatch(/^ATOLL_BUS_SECRET differs from that of (billing|gateway|gpuaas|teams)/);
      expect(others.map((check) => check.reason())).toEqual([null, null, null]);
      const told = (start: string) => errors.filter((line) => line.startsWith(start));
      expect(told('Every process that answered, of ')).toHaveLength(misled.length);
      expect(told(`A process of ${name} signs with another ATOLL_BUS_SECRET than this process`)).toHaveLength(3);
      expect(errors).toHaveLength(misled.length + 3);
    },
  );

  it('makes one of several replicas not ready where it alone has another one', async () => {
    const healthy = await Promise.all(['gateway', 'teams', 'teams'].map((name) => start(name, right)));
    const odd = await start('teams', wrong);
    await concluded(...healthy, odd);
    expect(healthy.map((check) => check.reason())).toEqual([null, null, null]);
    expect(odd.reason()).toBe('ATOLL_BUS_SECRET differs from that of gateway');
  });

  it('makes both not ready where there are but two, and neither once one of them has the right one', async () => {
    const again = { ...patient, everyMs: 5_000 };
    const gateway = await start('gateway', right, again);
    const teams = await start('teams', wrong, again);
    await until(
      () =>
        gateway.reason() !== null &&
        teams.reason() !== null &&
        gateway.reason() !== unknown &&
        teams.reason() !== unknown,
    );
    expect([gateway.reason(), teams.reason()]).toEqual([
      'ATOLL_BUS_SECRET differs from that of teams',
      'ATOLL_BUS_SECRET differs from that of gateway',
    ]);
    await stop(teams);
    const mended = await start('teams', right);
    await until(() => gateway.reason() === null && mended.reason() === null);
  });

  it('stays so while secrets are rotated one process after the other', async () => {
    const steps: Secrets[] = [old, [old, right], [right, old], right];
    for (const [index, after] of steps.entries()) {
      const before = steps[index - 1] ?? after;
      const gateway = await start('gateway', before);
      const teams = await start('teams', after);
      await concluded(gateway, teams);
      expect([gateway.reason(), teams.reason(), errors]).toEqual([null, null, []]);
      await stop(gateway);
      await stop(teams);
    }
  });

  it('is asked again when NATS is back', async () => {
    const own = await startNats();
    const link = NatsLink.open({ servers: own.url, name: 'gateway', reconnectWaitMs: 10 });
    const check = new SecretCheck(link, right);
    await concluded(check);
    await own.kill();
    await until(() => !link.status().ready);
    await own.restart();
    const other = NatsLink.open({ servers: own.url, name: 'teams' });
    const stranger = new SecretCheck(other, wrong);
    await until(() => check.reason() !== null);
    await Promise.all([check.close(), stranger.close()]);
    await Promise.all([link.close(), other.close()]);
    await own.stop();
  });

  it('is not put in question by what somebody sends who has no secret', async () => {
    const teams = await start('teams', right);
    const gateway = await start('gateway', right);
    await concluded(teams, gateway);
    const stranger = await connect({ servers: server.url, noEcho: true });
    // Answers every question with noise, and asks a hundred times, in the name of others and of nobody.
    const noise = headers();
    noise.set('Atoll-Signature', 'forged');
    stranger.subscribe('hello', {
      callback: (_error, { reply = '' }) =>
        ['teams', 'billing', ''].forEach((name) => stranger.publish(`${reply}.${name}.hello`, '', { headers: noise })),
    });
    const heard: string[] = [];
    stranger.subscribe('>', { callback: (_error, message) => void heard.push(message.subject) });
    for (let time = 0; time < 100; time += 1) {
      for (const reply of [
        createInbox('_INBOX.billing'),
        '_INBOX.x',
        'events.teams.forged',
        '_INBOX.a.b.c.d',
        '_INBOX.a b.c',
      ])
        stranger.publish('hello', '', { reply: reply.replace(' ', ''), headers: noise });
    }
    await stranger.flush();
    for (const check of [teams, gateway]) check.ask();
    const latecomer = await start('billing', right);
    await concluded(latecomer);
    expect([teams, gateway, latecomer].map((check) => check.reason())).toEqual([null, null, null]);
    expect(errors.filter((line) => line.startsWith('Every process'))).toEqual([]);
    expect(errors.length).toBeLessThanOrEqual(3);
    expect(heard.filter((subject) => !/^hello$|^_INBOX\.[a-z-]+\.\w+\.[a-z]*\.hello$/.test(subject))).toEqual([]);
    await stranger.close();
  });
});
