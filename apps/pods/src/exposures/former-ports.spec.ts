import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { exposedServices, type ExposedService, type Pod } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { inTransactionBeside, timeoutFactor, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { ExposureSteps } from '../doors/exposure-steps.js';
import { ExternalPorts } from '../doors/ports.js';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
let pod: Pod;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
  pod = await fixture.running(team);
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => fixture.stop());

const isActive = ({ status }: ExposedService) => status === 'active';
const expose = () =>
  fixture.call(
    exposedServices.expose,
    { pod_name: pod.pod_name, service_name: `s-${newId()}`, port: 80, protocol: 'HTTP' },
    team.member,
  );
const active = async () => fixture.untilExposed(await expose(), isActive);
const update = ({ service_id }: ExposedService, more: object) =>
  fixture.call(exposedServices.update, { service_id, ...more }, team.member);
const portsOf = async ({ service_id }: ExposedService) => {
  const reserved = 'SELECT external_port FROM reserved_port WHERE service_id = $1 ORDER BY external_port';
  const rows = await fixture.query<{ external_port: number }>(reserved, [service_id]);
  return rows.map(({ external_port }) => external_port);
};
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

/** The cluster does not come to close the first door of a service. Returns what lets it. */
async function neverClosed({ service_id }: ExposedService): Promise<() => void> {
  const driver = await fixture.simulated.driverOf('1');
  const observe = driver.observeDoors.bind(driver);
  const sights = jest.spyOn(driver, 'observeDoors').mockImplementation(async (refs, signal) => {
    const seen = await observe(refs, signal);
    const isFirst = (at: number) => refs[at]?.id === `svc-${service_id}` && refs[at].run === 1;
    return seen.map((sight, at) =>
      isFirst(at) && sight.phase === 'absent' ? { phase: 'opening', trouble: null } : sight,
    );
  });
  return () => sights.mockRestore();
}

/** Services that are active are left alone. */
function withoutReviews(): void {
  const steps = fixture.get(ExposureSteps);
  jest.spyOn(steps, 'step').mockImplementation(async (exposure, context) => {
    if (exposure.state === 'active') return { againAfterMs: 60_000 };
    return ExposureSteps.prototype.step.call(steps, exposure, context);
  });
}

it('an update is done when the old port is closed and free for others, and not before', async () => {
  const service = await active();
  const close = await neverClosed(service);
  const external_port = await anyPort();
  await update(service, { external_port });
  const moved = await fixture.untilExposed(service, (found) => found.external_port === external_port);
  for (let look = 0; look < 3; look += 1) {
    expect((await fixture.untilExposed(service, () => true)).status).toBe('updating');
    await fixture.hurry();
  }
  expect(await (await fetch(moved.url)).text()).toBe(`${pod.pod_name}\n`);
  expect((await errorOf(update(service, { external_port: await anyPort() }))).code).toBe('conflict');
  expect(await portsOf(service)).toEqual([service.external_port, external_port].toSorted());
  withoutReviews();
  close();
  await fixture.untilExposed(service, isActive);
  expect(await portsOf(service)).toEqual([external_port]);
});

it('a service whose first port was taken opens another one once the door of the first is closed, and not before', async () => {
  const service = await expose();
  const stranger = createServer().listen(service.external_port, '127.0.0.1');
  await once(stranger, 'listening');
  const close = await neverClosed(service);
  await fixture.untilExposed(service, ({ external_port }) => external_port !== service.external_port);
  for (let look = 0; look < 3; look += 1) {
    await fixture.hurry();
    expect((await fixture.untilExposed(service, () => true)).status).toBe('provisioning');
  }
  close();
  const { url } = await fixture.untilExposed(service, isActive);
  expect(await (await fetch(url)).text()).toBe(`${pod.pod_name}\n`);
  stranger.close();
});

it('a service whose old port does not close is active, and keeps it: another update is refused until it is closed', async () => {
  const service = await active();
  const close = await neverClosed(service);
  const external_port = await anyPort();
  await update(service, { external_port });
  await fixture.untilExposed(service, (found) => found.external_port === external_port);
  await fixture.query(`UPDATE exposure SET entered_at = entered_at - interval '31 s' WHERE service_id = $1`, [
    service.service_id,
  ]);
  await fixture.untilExposed(service, isActive);
  for (const more of [{ external_port: await anyPort() }, { external_port: service.external_port }, { port: 81 }])
    expect(await errorOf(update(service, more))).toMatchObject({
      code: 'conflict',
      message: `The former external port ${service.external_port} of the service is not closed yet; retry the update later.`,
    });
  expect((await update(service, { service_name: 'renamed' })).service_name).toBe('renamed');
  expect(await portsOf(service)).toEqual([service.external_port, external_port].toSorted());
  close();
  while ((await portsOf(service)).length > 1) await fixture.untilExposed(service, isActive);
  expect(await portsOf(service)).toEqual([external_port]);
  expect((await update(service, { port: 81 })).status).toBe('updating');
});

it('an update that came to nothing has given back the port that it wanted when the service is active again', async () => {
  const service = await active();
  const stranger = createServer();
  let external_port = 0;
  while (!stranger.listening) {
    external_port = await anyPort();
    await new Promise<void>((resolve) => {
      stranger.once('error', () => resolve()).listen(external_port, '127.0.0.1', resolve);
    });
  }
  await update(service, { external_port });
  withoutReviews();
  expect(await fixture.untilExposed(service, isActive)).toMatchObject({ error: { code: 'port_in_use' } });
  expect(await portsOf(service)).toEqual([service.external_port]);
  stranger.close();
});

it('a review gives back no port that an update has reserved while the review waited for it', async () => {
  const service = await active();
  const former = await anyPort();
  await fixture.get(ExternalPorts).reserve(fixture.get(DataSource).manager, service.host, former, service.service_id);
  const steps = fixture.get(ExposureSteps);
  const [seen] = await fixture.query('SELECT * FROM exposure WHERE service_id = $1', [service.service_id]);
  await inTransactionBeside(fixture.get(DataSource), async (updating) => {
    await steps.lock(updating.manager, service.service_id);
    await fixture.get(ExternalPorts).reserve(updating.manager, service.host, former, service.service_id);
    await updating.query('UPDATE exposure SET revision = revision + 1 WHERE service_id = $1', [service.service_id]);
    const review = steps.step(steps.rowOf(seen!), { signal: AbortSignal.timeout(60_000 * timeoutFactor) });
    await untilLockWaits(fixture, { text: 'DELETE FROM reserved_port', unless: review });
    await updating.commitTransaction();
    await review;
  });
  expect(await portsOf(service)).toContain(former);
});
