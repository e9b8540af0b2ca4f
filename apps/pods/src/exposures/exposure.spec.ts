import { createSocket } from 'node:dgram';
import { createServer, connect, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  exposedServices,
  podBatches,
  pods,
  type ExposedService,
  type ExposeService,
  type Pod,
} from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { timeoutFactor } from '@atoll/testing';
import { ExposureSteps } from '../doors/exposure-steps.js';
import { ExternalPorts } from '../doors/ports.js';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { say } from './say-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
let pod: Pod;
/** One that no service has. */
const anyPort = async (): Promise<number> => {
  const { first, last } = fixture.get(ExternalPorts);
  const [free] = await fixture.query<{ port: number }>(
    `SELECT port FROM generate_series($1::integer, $2::integer) port
     WHERE NOT EXISTS (SELECT FROM reserved_port WHERE external_port = port) ORDER BY random() LIMIT 1`,
    [first, last],
  );
  return free?.port ?? 0;
};
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
  pod = await fixture.running(team);
});
afterAll(() => fixture.stop());

const ask = (more: Partial<ExposeService> = {}, caller = team.member, of = pod) =>
  fixture.call(
    exposedServices.expose,
    { pod_name: of.pod_name, service_name: `s-${newId()}`, port: 80, protocol: 'HTTP', ...more },
    caller,
  );
const active = async (more: Partial<ExposeService> = {}) =>
  fixture.untilExposed(await ask(more), ({ status }) => status === 'active' || status === 'failed');
const remove = (service: ExposedService) =>
  fixture.call(exposedServices.delete, { id: service.service_id }, team.member);
const fetchText = async (url: string) => (await fetch(url)).text();
const isClosed = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.on('error', () => resolve(true));
  });
/** The cluster closes it when it comes to it, which may be after the door is gone. */
const untilClosed = async (port: number): Promise<void> => {
  while (!(await isClosed(port))) await fixture.work();
};
const reserved = async ({ service_id }: ExposedService) =>
  (await fixture.query('SELECT FROM reserved_port WHERE service_id = $1', [service_id])).length;

describe('an exposed service', () => {
  it('is reached at its url, which names its pod, until it is deleted and its port closed', async () => {
    const made = await ask({ service_name: 'web' });
    expect(made).toMatchObject({ status: 'pending', host: '127.0.0.1', ssl_enabled: false, pod_name: pod.pod_name });
    expect(made.url).toBe(`http://127.0.0.1:${made.external_port}`);
    const service = await fixture.untilExposed(made, ({ status }) => status === 'active');
    expect(await fetchText(service.url)).toBe(`${pod.pod_name}\n`);
    expect(
      (await fixture.call(exposedServices.list, { pod_name: pod.pod_name }, team.member)).data.map(
        ({ service_id }) => service_id,
      ),
    ).toContain(service.service_id);
    const [first] = (await fixture.call(exposedServices.list, { pod_name: pod.pod_name }, team.member)).data;
    const page = await fixture.call(exposedServices.list, { pod_name: pod.pod_name, limit: 1 }, team.member);
    expect([page.data.map(({ service_id }) => service_id), page.pagination]).toEqual([
      [first?.service_id],
      { page: 1, limit: 1, total: expect.any(Number) },
    ]);
    expect((await remove(service)).status).toBe('deleting');
    expect((await errorOf(remove(service))).code).toBe('not_found');
    await fixture.untilUnexposed(service);
    await untilClosed(service.external_port);
    expect((await errorOf(fixture.call(exposedServices.find, { service_id: service.service_id }))).code).toBe(
      'not_found',
    );
  });

  it('speaks TCP, TLS and UDP', async () => {
    const tcp = await active({ protocol: 'TCP' });
    expect(await say(tcp.url)).toMatchObject({ line: `${pod.pod_name}: hello` });
    const tls = await active({ protocol: 'TCP', ssl_enabled: true });
    expect(tls.url).toMatch(/^tls:/);
    const { line, certificate } = await say(tls.url);
    expect([line, certificate?.checkIP('127.0.0.1')]).toEqual([`${pod.pod_name}: hello`, '127.0.0.1']);
    const udp = await active({ protocol: 'UDP' });
    const socket = createSocket('udp4');
    const answer = new Promise<string>((resolve) => socket.on('message', (message) => resolve(message.toString())));
    socket.send('ping', udp.external_port, '127.0.0.1');
    expect(await answer).toBe(`${pod.pod_name}: ping`);
    socket.close();
    for (const service of [tcp, tls, udp]) await remove(service);
  });

  it('is listed with all others of its team, whatever their pods, and not to another', async () => {
    const [one, own] = [await ask(), await fixture.running(team)];
    const two = await ask({}, team.member, own);
    const list = (caller: typeof team.member) => fixture.call(podBatches.exposed, { team_id: team.team_id }, caller);
    const shown = (await list(team.member)).data.map(({ service_id, pod_name }) => [service_id, pod_name]);
    expect(shown).toEqual(
      expect.arrayContaining([
        [one.service_id, pod.pod_name],
        [two.service_id, own.pod_name],
      ]),
    );
    const other = await fixture.team();
    expect((await errorOf(list(other.member))).code).toBe('not_found');
    const { subscription_id } = pod;
    const ofSubscription = async (caller: typeof team.member) =>
      (await fixture.call(podBatches.exposed, { subscription_id }, caller)).data.map(({ service_id }) => service_id);
    expect(await ofSubscription(team.member)).toContain(one.service_id);
    expect(await ofSubscription(other.member)).toEqual([]);
    expect(await fixture.call(podBatches.exposed, {}, team.member)).toEqual({ data: [] });
    await remove(one);
    await fixture.call(pods.delete, { pod_name: own.pod_name }, team.member);
    await fixture.untilDeleted(own);
    expect((await list(team.member)).data.map(({ service_id }) => service_id)).not.toContain(two.service_id);
  });

  it('leaves a line of each request in the log of its pod', async () => {
    const service = await active();
    await fetchText(`${service.url}/path?x=1`);
    const driver = await fixture.simulated.driverOf('1');
    const messages: string[] = [];
    const end = new AbortController();
    for await (const { lines } of driver.readLogs({ kind: 'pod', id: pod.pod_id, run: 1 }, null, end.signal)) {
      messages.push(...lines.map(({ message }) => message));
      if (messages.some((message) => message.includes('/path'))) end.abort();
    }
    expect(messages).toContain('port 80: "GET /path?x=1 HTTP/1.1" 200');
    await remove(service);
  });

  it('ends with its pod, and gives its port back', async () => {
    const own = await fixture.running(team);
    const service = await fixture.untilExposed(await ask({}, team.member, own), ({ status }) => status === 'active');
    expect(await reserved(service)).toBe(1);
    await fixture.act(own, 'stop', team);
    await fixture.untilUnexposed(service);
    await untilClosed(service.external_port);
    expect(await reserved(service)).toBe(0);
    await fixture.until(own, 'stopped');
    expect((await errorOf(ask({}, team.member, own))).message).toBe(
      'The pod is not running; only services of a running pod can be exposed.',
    );
  });

  it('gives back the port of a door that the cluster cannot see any more, too', async () => {
    const service = await active();
    const driver = await fixture.simulated.driverOf('1');
    const sights = jest
      .spyOn(driver, 'observeDoors')
      .mockImplementation((refs) => Promise.resolve(refs.map(() => ({ phase: 'absent' }))));
    await remove(service);
    await fixture.untilUnexposed(service);
    sights.mockRestore();
    await untilClosed(service.external_port);
  });

  it('outlives a restart of its pod', async () => {
    const own = await fixture.running(team);
    const service = await fixture.untilExposed(await ask({}, team.member, own), ({ status }) => status === 'active');
    await fixture.act(own, 'restart', team);
    await fixture.untilIs(own, ({ status, restarts }) => status === 'running' && restarts === 1);
    expect(await fetchText(service.url)).toBe(`${own.pod_name}\n`);
    await fixture.call(pods.delete, { pod_name: own.pod_name }, team.member);
    await fixture.untilDeleted(own);
  });
});

describe('an update', () => {
  const update = (service: ExposedService, more: object) =>
    fixture.call(exposedServices.update, { service_id: service.service_id, ...more }, team.member);

  it('opens the new port before the old one closes, and gives that back', async () => {
    const service = await active();
    const external_port = await anyPort();
    expect(await update(service, { external_port })).toMatchObject({
      status: 'updating',
      external_port: service.external_port,
    });
    expect(await reserved(service)).toBe(2);
    const moved = await fixture.untilExposed(service, ({ status }) => status === 'active');
    expect(moved.external_port).toBe(external_port);
    expect(await fetchText(moved.url)).toBe(`${pod.pod_name}\n`);
    await untilClosed(service.external_port);
    while ((await reserved(service)) > 1) await fixture.untilExposed(service, () => true);
    await remove(moved);
  });

  it('keeps the port that it has reserved while a review of before it ends', async () => {
    const service = await active();
    const steps = fixture.get(ExposureSteps);
    const [raw] = await fixture.query('SELECT * FROM exposure WHERE service_id = $1', [service.service_id]);
    const driver = await fixture.simulated.driverOf('1');
    const openDoor = driver.openDoor.bind(driver);
    // The review has found that no other door is open.
    jest.spyOn(driver, 'openDoor').mockImplementationOnce(async (door, signal) => {
      await update(service, { external_port: await anyPort() });
      await openDoor(door, signal);
    });
    await steps.step(steps.rowOf(raw!), { signal: AbortSignal.timeout(60_000 * timeoutFactor) });
    expect(await reserved(service)).toBe(2);
    await remove(service);
  });

  it('makes the port one that was asked for, which no other replaces where something else takes it', async () => {
    const service = await active();
    const external_port = await anyPort();
    await update(service, { external_port });
    await fixture.untilExposed(service, ({ status }) => status === 'active');
    const driver = await fixture.simulated.driverOf('1');
    const door = { kind: 'door', id: `svc-${service.service_id}`, run: 2 } as const;
    await driver.remove(door, AbortSignal.timeout(60_000 * timeoutFactor));
    while (!(await isClosed(external_port)));
    const server = await listen(external_port);
    const lost = await fixture.untilExposed(
      service,
      (found) => found.status === 'failed' || found.external_port !== external_port,
    );
    expect(lost).toMatchObject({ status: 'failed', external_port, error: { code: 'port_in_use' } });
    server.close();
    await remove(lost);
  });

  it('of the certificate alone keeps the port', async () => {
    const service = await active();
    await update(service, { ssl_enabled: true, external_port: service.external_port });
    const moved = await fixture.untilExposed(service, ({ status }) => status === 'active');
    expect(moved.url).toBe(`https://127.0.0.1:${service.external_port}`);
    expect((await say(moved.url.replace('https', 'tls'))).line).toContain(pod.pod_name);
    await remove(moved);
  });

  it('to a port that something else on the host has leaves it on the old one, and says why', async () => {
    const service = await active();
    const stranger = await occupy();
    const renamed = await update(service, { service_name: 'after', external_port: stranger.port });
    expect(renamed).toMatchObject({ service_name: 'after', status: 'updating' });
    // The name that it has again is nobody else's meanwhile.
    expect((await errorOf(ask({ service_name: service.service_name }))).code).toBe('conflict');
    const reverted = await fixture.untilExposed(service, ({ status }) => status === 'active');
    expect(reverted).toMatchObject({
      service_name: service.service_name,
      external_port: service.external_port,
      error: {
        code: 'port_in_use',
        message: `Something else on the host listens on the external port ${stranger.port}.`,
      },
    });
    expect(await fetchText(reverted.url)).toBe(`${pod.pod_name}\n`);
    const again = await update(service, { service_name: 'after' });
    expect([again.service_name, again.status, again.error]).toEqual(['after', 'active', undefined]);
    stranger.server.close();
    await remove(reverted);
  });

  it('of its name alone leaves it active, and is its last change', async () => {
    const service = await active();
    const [before] = await fixture.query<{ at: string }>('SELECT clock_timestamp()::timestamptz(3)::text AS at');
    const renamed = await update(service, { service_name: 'renamed' });
    expect(renamed).toEqual({ ...service, service_name: 'renamed', updated_at: expect.any(String) });
    expect(Date.parse(renamed.updated_at)).toBeGreaterThanOrEqual(Date.parse(before?.at ?? ''));
    const found = await fixture.call(exposedServices.find, { service_id: service.service_id }, team.member);
    expect(found).toEqual(renamed);
    const { updated_at } = await update(service, { port: 81 });
    expect(Date.parse(updated_at)).toBeGreaterThanOrEqual(Date.parse(renamed.updated_at));
    await fixture.untilExposed(service, ({ status }) => status === 'active');
    await remove(service);
  });

  it('that changes nothing leaves it active; one of a service that is not active is refused', async () => {
    const service = await active();
    expect((await update(service, { port: service.port })).status).toBe('active');
    await update(service, { external_port: await anyPort() });
    expect((await errorOf(update(service, { port: 81 }))).code).toBe('conflict');
    expect((await errorOf(update(service, {}))).code).toBe('invalid_input');
    await fixture.untilExposed(service, ({ status }) => status === 'active');
    await remove(service);
  });
});

describe('an external port', () => {
  it('is one service’s: of two who ask for it one gets 409, also at the same instant', async () => {
    const external_port = await anyPort();
    const answers = await Promise.allSettled([ask({ external_port }), ask({ external_port })]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(await errorOf(ask({ external_port, protocol: 'UDP' }))).toMatchObject({
      code: 'port_in_use',
      message: `The external port ${external_port} is used by another service.`,
    });
    for (const answer of answers) if (answer.status === 'fulfilled') await remove(answer.value);
  });

  it('that something else on the host has fails the service that asked for it, and is given back', async () => {
    const stranger = await occupy();
    const failed = await active({ external_port: stranger.port });
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'port_in_use' } });
    await fixture.untilExposed(failed, ({ status }) => status === 'failed');
    while (
      (
        await fixture.query('SELECT FROM reserved_port WHERE external_port = $1 AND service_id IS NOT NULL', [
          stranger.port,
        ])
      ).length > 0
    )
      await fixture.untilExposed(failed, () => true);
    stranger.server.close();
    await remove(failed);
    await fixture.untilUnexposed(failed);
  });

  it('that the platform picked and something else has is replaced by another one', async () => {
    const made = await ask();
    const server = await listen(made.external_port);
    const service = await fixture.untilExposed(made, ({ status }) => status === 'active');
    expect(service.external_port).not.toBe(made.external_port);
    expect(await fetchText(service.url)).toBe(`${pod.pod_name}\n`);
    server.close();
    await remove(service);
  });

  it('is had by exactly as many of those who ask at once as there are ports', async () => {
    // Of so few, one team may have all.
    const few = await PodsFixture.start({ exposedPorts: '29100-29105' });
    try {
      const ours = await few.team();
      const own = await few.running(ours);
      const answers = await Promise.allSettled(
        Array.from({ length: 30 }, (_, at) =>
          few.call(
            exposedServices.expose,
            { pod_name: own.pod_name, service_name: `s-${at}`, port: 80, protocol: 'HTTP' },
            ours.member,
          ),
        ),
      );
      expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(6);
      for (const answer of answers)
        if (answer.status === 'rejected') expect(answer.reason).toMatchObject({ code: 'port_in_use' });
    } finally {
      await few.stop();
    }
  });
});

function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}

/** A port of the range that something else on this host has. */
async function occupy(): Promise<{ port: number; server: Server }> {
  for (;;) {
    const port = await anyPort();
    const server = await listen(port).catch(() => undefined);
    if (server) return { port, server };
  }
}
