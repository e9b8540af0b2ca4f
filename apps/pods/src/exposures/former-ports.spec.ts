import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { exposedServices, type ExposedService, type Pod } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { inTransactionBeside, timeoutFactor, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { ExposureSteps } from '../doors/exposure-steps.js';
import { ExternalPorts } from '../doors/ports.js';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
let pod: Pod;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
  pod = await fixture.running(team);
});
afterAll(() => fixture.stop());

const isActive = ({ status }: ExposedService) => status === 'active';
const active = async () => {
  const asked = { pod_name: pod.pod_name, service_name: `s-${newId()}`, port: 80, protocol: 'HTTP' } as const;
  return fixture.untilExposed(await fixture.call(exposedServices.expose, asked, team.member), isActive);
};
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
