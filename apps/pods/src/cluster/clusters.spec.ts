import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpsServer } from 'node:https';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { clusterChanged, clusterPurpose, clusters, type ClusterChanged } from '@atoll/contracts/gpuaas';
import { exposedServices, type Pod, type PodStatus } from '@atoll/contracts/pods';
import { Sealer } from '@atoll/seal';
import { runs, timeoutFactor } from '@atoll/testing';
import fc from 'fast-check';
import { selfSigned } from '../certificates/self-signed.js';
import { errorOf, PodsFixture } from '../pods-fixture.js';
import { ClusterRows } from './cluster-rows.js';
import { Clusters } from './clusters.js';

const patienceMs = 90_000 * timeoutFactor;
let fixture: PodsFixture;
let folder: string;
let silent: Server;
let isHanging = true;
const held = new Set<Socket>();
/** The engine is gone: whoever waits for it is told so. */
const end = () => {
  isHanging = false;
  for (const socket of held) socket.destroy();
};
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-silent-'));
  // A container engine that takes connections, and never answers.
  silent = createServer((socket) => {
    held.add(socket.on('error', () => undefined));
    if (!isHanging) socket.destroy();
  });
  await new Promise<void>((resolve) => silent.listen(join(folder, 'engine.sock'), resolve));
  fixture = await PodsFixture.start({ isRunning: true });
});
afterAll(async () => {
  end();
  await fixture.stop();
  await new Promise((resolve) => silent.close(resolve));
  rmSync(folder, { recursive: true });
});

let last = 100;
let id: string;
beforeEach(() => {
  isHanging = true;
  id = String((last += 1));
});
const simulated = (more: Partial<ClusterChanged> = {}): ClusterChanged => ({
  ...fixture.neighbours.cluster({ gpuaas_id: id }),
  ...more,
});
const hanging = (more: Partial<ClusterChanged> = {}) =>
  simulated({ driver: 'docker', socket: join(folder, 'engine.sock'), ...more });
const row = () => fixture.get(ClusterRows).read(id);
const comesTo = async (pod: Pod, status: PodStatus): Promise<Pod> => {
  for (const lateMs = Date.now() + patienceMs; ; await delay(20)) {
    const found = await fixture.pod(pod);
    if (found.status === status) return found;
    if (Date.now() > lateMs) throw new Error(`Still ${JSON.stringify(found)}.`);
  }
};
const asked = () => fixture.neighbours.asked.filter((subject) => subject === clusters.lookUp.subject).length;

describe('what is known of clusters', () => {
  it('law: is what was told last, in whatever order and however often that comes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray([1, 2, 3, 4, 5, 1, 3, 5], { minLength: 1 }), async (order) => {
        id = String((last += 1));
        for (const revision of order) {
          await fixture.tell(
            clusterChanged,
            simulated({ revision, setting: Math.ceil(revision / 2), public_host: `host-${revision}.example.com` }),
          );
        }
        const greatest = Math.max(...order);
        expect(await row()).toMatchObject({ revision: String(greatest), publicHost: `host-${greatest}.example.com` });
      }),
      runs(30),
    );
  });

  it('is asked for once where nothing was told yet, and again where it must be newer', async () => {
    const before = asked();
    await row();
    await row();
    expect(asked() - before).toBe(1);
    fixture.neighbours.clusters.set(id, { setting: 2, revision: 5, public_host: 'gpu.example.com' });
    await fixture.get(Clusters).requireSetting(id, 1);
    expect(asked() - before).toBe(1);
    await fixture.get(Clusters).requireSetting(id, 2);
    expect([asked() - before, (await row()).publicHost]).toEqual([2, 'gpu.example.com']);
  });

  it('keeps which engine was found for as long as the cluster is not set anew', async () => {
    await fixture.tell(clusterChanged, simulated({ revision: 1, setting: 1 }));
    const found = await row();
    const keep = (identity: string) => fixture.get(ClusterRows).keepIdentity(found, identity);
    expect([await keep('one'), await keep('two')]).toEqual(['one', 'one']);
    await fixture.tell(clusterChanged, simulated({ revision: 2, setting: 1, is_unreachable: true }));
    expect((await row()).identity).toBe('one');
    await fixture.tell(clusterChanged, simulated({ revision: 3, setting: 2 }));
    expect([(await row()).identity, await keep('one')]).toEqual([null, undefined]);
  });

  it('opens credentials for their own cluster alone, and shows nothing of them', async () => {
    const text = JSON.stringify({ ca: 'x', cert: 'x', key: 'hunter2' });
    const sealed_tls = fixture.get(Sealer).seal(text, clusterPurpose('1'));
    await fixture.tell(
      clusterChanged,
      simulated({ driver: 'docker', url: 'https://127.0.0.1:9', sealed_tls, revision: 2, setting: 2 }),
    );
    const error = await fixture.get(Clusters).driverOf(id).catch(String);
    expect(error).toMatch(/cannot be opened/);
    expect(error).not.toContain('hunter2');
  });
});

describe('an engine behind TLS', () => {
  it('is reached with the credentials that came sealed, and by nobody without them', async () => {
    const { certificate, key } = await selfSigned('127.0.0.1', 1);
    const asked: string[] = [];
    const engine = createHttpsServer(
      { cert: certificate, key, ca: certificate, requestCert: true },
      (request, response) => {
        asked.push(request.url ?? '');
        response.writeHead(200, { server: 'Docker/27.3.1 (linux)', 'api-version': '1.47' });
        response.end(JSON.stringify({ ID: 'engine-1', Name: 'host-1', DockerRootDir: '/' }));
      },
    );
    await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(engine.address() as AddressInfo).port}`;
    const sealed_tls = fixture
      .get(Sealer)
      .seal(JSON.stringify({ ca: certificate, cert: certificate, key }), clusterPurpose(id));
    const told = simulated({ driver: 'docker', url, sealed_tls, revision: 2, setting: 2 });
    try {
      await fixture.tell(clusterChanged, told);
      await fixture.get(Clusters).driverOf(id);
      expect([(await row()).identity, asked.length > 0]).toEqual(['engine-1', true]);
      const stranger = await selfSigned('127.0.0.1', 1);
      const others = { ca: certificate, cert: stranger.certificate, key: stranger.key };
      const sealed = fixture.get(Sealer).seal(JSON.stringify(others), clusterPurpose(id));
      await fixture.tell(clusterChanged, { ...told, sealed_tls: sealed, revision: 3, setting: 3 });
      await expect(fixture.get(Clusters).driverOf(id)).rejects.toMatchObject({
        code: expect.stringMatching(/^(?:unauthorised|unreachable)$/),
      });
    } finally {
      engine.closeAllConnections();
      await new Promise((resolve) => engine.close(resolve));
    }
  });
});

describe('a cluster that hangs', () => {
  it('holds up no pod of another, and takes no new service while it is known not to answer', async () => {
    const team = await fixture.team('member', 20);
    const { subscription_id } = fixture.neighbours.subscription(team.team_id, team.workspace_id, 4, { gpuaas_id: id });
    const there = await fixture.create(team, { subscription_id });
    await comesTo(there, 'running');
    fixture.neighbours.clusters.set(id, hanging({ setting: 2, revision: 2 }));
    await fixture.tell(clusterChanged, hanging({ setting: 2, revision: 2 }));
    const waiting = await fixture.create(team, { subscription_id });
    await comesTo(waiting, 'pulling');
    for (const pod of [await fixture.create(team), await fixture.create(team)]) await comesTo(pod, 'running');
    expect((await fixture.pod(waiting)).status).toBe('pulling');
    // What it can do is known without it.
    expect((await fixture.get(Clusters).capabilitiesOf(id)).volumes).toBe(true);
    await fixture.tell(clusterChanged, hanging({ setting: 2, revision: 3, is_unreachable: true }));
    const terms = { pod_name: there.pod_name, service_name: 'web', port: 80, protocol: 'HTTP' as const };
    expect((await errorOf(fixture.call(exposedServices.expose, terms, team.member))).code).toBe('unavailable');
    expect((await errorOf(fixture.createVolume(team, { gpuaas_id: id }))).code).toBe('unavailable');
    end();
    await fixture.tell(clusterChanged, simulated({ driver: 'simulated', socket: null, setting: 3, revision: 4 }));
    await comesTo(waiting, 'running');
  });
});

describe('another driver', () => {
  it('takes over once it is told of', async () => {
    const first = await fixture.get(Clusters).driverOf(id);
    expect(await fixture.get(Clusters).driverOf(id)).toBe(first);
    await fixture.tell(clusterChanged, hanging({ setting: 2, revision: 2 }));
    const second = fixture.get(Clusters).driverOf(id).catch(String);
    end();
    expect(await second).toMatch(/engine/);
    await fixture.tell(clusterChanged, simulated({ setting: 3, revision: 3 }));
    expect(await fixture.get(Clusters).driverOf(id)).toBe(first);
  });

  it('stays where one who has read an older setting before asks for it late', async () => {
    await fixture.tell(clusterChanged, hanging({ revision: 1, setting: 9 }));
    const older = await row();
    await fixture.tell(clusterChanged, simulated({ revision: 2, setting: 10 }));
    const driver = await fixture.get(Clusters).driverOf(id);
    const closed = jest.spyOn(driver, 'close');
    const rows = fixture.get(ClusterRows);
    const read = rows.read.bind(rows);
    // Workers read the rows of other clusters meanwhile.
    const late = [older];
    jest
      .spyOn(rows, 'read')
      .mockImplementation(async (gpuaasId) => (gpuaasId === id && late.shift()) || read(gpuaasId));
    expect(await fixture.get(Clusters).driverOf(id)).toBe(driver);
    expect(late).toEqual([]);
    expect(await fixture.get(Clusters).driverOf(id)).toBe(driver);
    expect(closed).not.toHaveBeenCalled();
  });
});
