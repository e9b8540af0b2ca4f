import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { clusters, podWorkloads, regions, type SetCluster } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import { Sealer } from '@atoll/seal';
import { memberOf, timeoutFactor } from '@atoll/testing';
import { errorOf, GpuaasFixture } from '../gpuaas-fixture.js';
import { aGpuaas, roundOf, toldOf } from './cluster-fixture.js';
import { EngineFixture } from './engine-fixture.js';

const run = promisify(execFile);
/** Good for as long as this file takes. */
const pods = systemContext('pods', { deadlineMs: 3_600_000 });
let engine: EngineFixture;
let fixture: GpuaasFixture;
let tls: { ca: string; cert: string; key: string };
let folder: string;
beforeAll(async () => {
  engine = await EngineFixture.start();
  folder = await mkdtemp(join(tmpdir(), 'atoll-pem-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const request = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-subj',
    '/CN=localhost',
    '-days',
    '2',
  ];
  await run('openssl', [...request, '-keyout', key, '-out', cert]);
  const certificate = readFileSync(cert, 'utf8');
  tls = { ca: certificate, cert: certificate, key: readFileSync(key, 'utf8') };
  fixture = await GpuaasFixture.start({
    sealKeys: Sealer.createKeys(),
    dockerSockets: `/var/run/other.sock, ${engine.socket}`,
    doorImage: 'localhost/atoll-door:1',
    clusterPatienceMs: 1_500 * timeoutFactor,
  });
});
afterAll(async () => {
  await fixture?.stop();
  await engine?.stop();
  await rm(folder, { recursive: true, force: true });
});

const gpuaas = () => aGpuaas(fixture);
const set = (gpuaas_id: string, terms: Omit<SetCluster, 'gpuaas_id'>) =>
  fixture.call(clusters.set, { gpuaas_id, ...terms });
const docker = () => ({ driver: 'docker' as const, socket: engine.socket });
const told = (gpuaasId: string) => toldOf(fixture, gpuaasId);
/** A GPU service with a subscription, and what a pod of it is refused with. */
const subscribed = async () => {
  const pool = await fixture.pool();
  const { subscription_id } = await fixture.subscribe(await fixture.team(), { pool_id: pool.pool_id, vgpus: 1 });
  await fixture.settle();
  const refusal = async () => (await fixture.ask(podWorkloads.check, { subscription_id, vgpus: 1 }, pods)).refusal;
  return { gpuaas_id: pool.gpuaas_id, refusal };
};

describe('the cluster of a GPU service', () => {
  it('is simulated until it is set, and then what was set, with what the check found', async () => {
    const gpuaas_id = await gpuaas();
    expect(await fixture.call(clusters.get, { gpuaas_id })).toMatchObject({
      driver: 'simulated',
      status: 'ok',
      socket: null,
    });
    const found = await set(gpuaas_id, { ...docker(), public_host: 'gpu.example.com' });
    expect(found).toEqual({
      gpuaas_id,
      driver: 'docker',
      public_host: 'gpu.example.com',
      socket: engine.socket,
      url: null,
      door_image: 'localhost/atoll-door:1',
      status: 'ok',
      since: expect.stringMatching(/Z$/),
      checks: expect.arrayContaining([
        { name: 'reachable', ok: true, detail: 'The engine answers as host-1.', how_to_fix: null },
      ]),
      capabilities: { tls: true, udp: true, volumes: true, vms: false, shell: 'exec' },
    });
    engine.hasDoorImage = false;
    const degraded = await fixture.call(clusters.check, { gpuaas_id });
    engine.hasDoorImage = true;
    expect(degraded.status).toBe('degraded');
    expect(degraded.checks.filter(({ ok }) => !ok)).toEqual([
      expect.objectContaining({ name: 'door_image', how_to_fix: expect.any(String) }),
    ]);
    expect(
      (await told(gpuaas_id)).map(({ revision, setting, is_unreachable }) => [revision, setting, is_unreachable]),
    ).toEqual([
      [2, 2, false],
      [3, 2, false],
      [4, 2, false],
    ]);
  });

  it.each(['team_owner', 'member', 'viewer'] as const)('is for the operator alone: a %s is refused', async (role) => {
    const gpuaas_id = await gpuaas();
    const caller = memberOf(newId(), role);
    for (const attempt of [
      fixture.call(clusters.set, { gpuaas_id, driver: 'simulated' }, caller),
      fixture.call(clusters.get, { gpuaas_id }, caller),
      fixture.call(clusters.check, { gpuaas_id }, caller),
      fixture.call(clusters.lookUp, { gpuaas_id }, caller),
    ])
      expect((await errorOf(attempt)).code).toBe('forbidden');
    expect((await errorOf(fixture.call(clusters.get, { gpuaas_id: '999999' }))).code).toBe('not_found');
    expect((await errorOf(set('999999', docker()))).code).toBe('not_found');
  });

  it('keeps the key to itself: no answer, event or row has it, and it opens for this cluster alone', async () => {
    const gpuaas_id = await gpuaas();
    const url = 'https://127.0.0.1:9';
    const found = await set(gpuaas_id, { driver: 'docker', url, ...tls });
    expect(found).toMatchObject({ url, socket: null, status: 'unreachable' });
    const known = await fixture.ask(clusters.lookUp, { gpuaas_id }, pods);
    const rows = await fixture.query('SELECT * FROM cluster');
    const published = await told(gpuaas_id);
    expect(published.length).toBeGreaterThan(0);
    const secret = tls.key.split('\n')[1] ?? '';
    expect(secret.length).toBeGreaterThan(20);
    const shown = JSON.stringify([found, await fixture.call(clusters.get, { gpuaas_id }), known, rows, published]);
    expect(shown).not.toContain(secret);
    expect(shown).not.toContain('PRIVATE KEY');
    expect(known.sealed_tls).toMatch(/^v1\./);
  });

  it.each<[string, Partial<SetCluster>, string]>([
    ['a socket that no operator named', { socket: '/var/run/docker.sock' }, 'socket'],
    ['neither socket nor url', {}, 'socket'],
    ['both socket and url', { url: 'https://127.0.0.1:9', socket: 'own' }, 'socket'],
    ['a socket with a key', { socket: 'own', key: 'x' }, 'key'],
    ['a url without a certificate', { url: 'https://127.0.0.1:9' }, 'ca'],
    ['what is no certificate', { url: 'https://127.0.0.1:9', ca: 'x', cert: 'x', key: 'x' }, 'ca'],
    ['a url that is not https', { url: 'http://127.0.0.1:9' }, 'url'],
    ['a url with a path', { url: 'https://127.0.0.1:9/v1' }, 'url'],
    ['a url that cannot be read', { url: 'https://[', ca: 'x', cert: 'x', key: 'x' }, 'url'],
    ['a host that is none', { socket: 'own', public_host: 'a b' }, 'public_host'],
    ['a simulated driver with a socket', { driver: 'simulated', socket: 'own' }, 'socket'],
  ])('refuses %s, and names the field', async (_what, terms, field) => {
    const gpuaas_id = await gpuaas();
    const sent = { driver: 'docker' as const, ...terms, ...(terms.socket === 'own' && { socket: engine.socket }) };
    const error = await errorOf(set(gpuaas_id, sent));
    expect([error.code, (error.details as { errors: { path: string }[] }).errors[0]?.path]).toEqual([
      'invalid_input',
      field,
    ]);
    expect((await fixture.call(clusters.get, { gpuaas_id })).driver).toBe('simulated');
  });

  it('says of a key that is not that of the certificate, and of one that cannot be read, what is wrong and nothing of the key', async () => {
    const gpuaas_id = await gpuaas();
    const { stdout: other } = await run('openssl', ['genpkey', '-algorithm', 'ed25519']);
    for (const key of [other, tls.key.slice(0, 80)]) {
      const error = await errorOf(set(gpuaas_id, { driver: 'docker', url: 'https://127.0.0.1:9', ...tls, key }));
      expect([error.code, JSON.stringify(error)]).toEqual([
        'invalid_input',
        expect.not.stringContaining(key.split('\n')[1] ?? 'PRIVATE'),
      ]);
    }
    expect((await errorOf(set(gpuaas_id, { driver: 'kubernetes' }))).code).toBe('not_supported');
  });

  it('is given to no other driver or engine while it has VMs or volumes, or while nobody can say so', async () => {
    const { gpuaas_id } = await fixture.pool();
    fixture.keptOn.set(gpuaas_id, { vms: 1, shared_volumes: 2 });
    expect(await errorOf(set(gpuaas_id, docker()))).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('The cluster has 1 VM, 2 shared volumes'),
    });
    expect((await set(gpuaas_id, { driver: 'simulated', public_host: 'gpu.example.com' })).public_host).toBe(
      'gpu.example.com',
    );
    fixture.keptOn.set(gpuaas_id, 'away');
    expect((await errorOf(set(gpuaas_id, docker()))).code).toBe('unavailable');
    fixture.keptOn.delete(gpuaas_id);
    expect((await set(gpuaas_id, docker())).driver).toBe('docker');
  });

  it('is given to no other driver or engine while a pod runs there, and may be set to the same', async () => {
    const team = await fixture.team();
    const pool = await fixture.pool();
    const { gpuaas_id } = pool;
    const { subscription_id } = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 1 });
    await fixture.settle();
    const start = { pod_id: newId(), start: 1, subscription_id, pod_name: 'job-abcde', vgpus: 1 };
    expect((await fixture.ask(podWorkloads.start, start, pods)).cluster_setting).toBe(1);
    await fixture.settle();
    expect(await errorOf(set(gpuaas_id, docker()))).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('1 running pod'),
    });
    expect((await set(gpuaas_id, { driver: 'simulated', public_host: 'gpu.example.com' })).public_host).toBe(
      'gpu.example.com',
    );
    await fixture.ask(podWorkloads.end, { pod_id: start.pod_id, start: 1 }, pods);
    await fixture.settle();
    expect((await set(gpuaas_id, docker())).driver).toBe('docker');
    expect((await fixture.ask(podWorkloads.start, { ...start, pod_id: newId() }, pods)).cluster_setting).toBe(3);
  });

  it('takes nothing new while it does not answer, says since when, and takes pods again when it answers', async () => {
    const { gpuaas_id, refusal } = await subscribed();
    await set(gpuaas_id, docker());
    expect(await refusal()).toBeNull();
    engine.mode = 'hangs';
    const { since, status } = await fixture.call(clusters.check, { gpuaas_id });
    const message = `The cluster of this GPU service has not answered since ${since}; nothing new can start there.`;
    expect([status, await refusal()]).toEqual(['unreachable', { code: 'unavailable', message }]);
    await roundOf(fixture, gpuaas_id);
    // It was so before.
    expect((await fixture.call(clusters.get, { gpuaas_id })).since).toBe(since);
    engine.mode = 'answers';
    await roundOf(fixture, gpuaas_id);
    expect([(await fixture.call(clusters.get, { gpuaas_id })).status, await refusal()]).toEqual(['ok', null]);
    expect((await told(gpuaas_id)).map(({ is_unreachable }) => is_unreachable)).toEqual([false, false, true, false]);
  });

  it('is not used where another engine answers at its address, until it is set again', async () => {
    const { gpuaas_id, refusal } = await subscribed();
    await set(gpuaas_id, docker());
    engine.id = 'engine-2';
    const replaced = await fixture.call(clusters.check, { gpuaas_id });
    expect([replaced.status, replaced.checks.at(-1)]).toMatchObject(['unreachable', { name: 'identity', ok: false }]);
    const message = `The cluster of this GPU service has been out of use since ${replaced.since}; nothing new can start there.`;
    expect(await refusal()).toEqual({ code: 'unavailable', message });
    expect((await set(gpuaas_id, docker())).status).toBe('ok');
  });
});

describe('ATOLL_CLUSTER', () => {
  it('decides for GPU services that are new, and changes no other', async () => {
    const before = await gpuaas();
    const settings = { cluster: 'docker' as const, dockerSockets: engine.socket, dockerPublicHost: 'gpu.example.com' };
    const other = await GpuaasFixture.start(settings);
    try {
      const { region_id } = await other.call(regions.create, { region_name: 'eu-north' });
      const { gpuaas_id } = await other.call(regions.createGpuaas, { region_id, name: 'a' });
      const { driver, public_host, socket } = await other.call(clusters.check, { gpuaas_id });
      expect([driver, public_host, socket]).toEqual(['docker', 'gpu.example.com', engine.socket]);
      expect((await fixture.call(clusters.get, { gpuaas_id: before })).driver).toBe('simulated');
    } finally {
      await other.stop();
    }
  });
});
