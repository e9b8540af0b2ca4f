import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer, type Server } from 'node:http';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { describeWhere, freePort, podmanImage, podmanLacks } from '@atoll/testing';
import { createCertificate } from '../contract/certificates-fixture.js';
import { codeOf, eventually, Installation, ownerOf, soon, wanted } from '../contract/cluster-under-test-fixture.js';
import { greeting } from '../contract/doors-fixture.js';
import type { ObjectRef } from '../objects.js';
import { DockerDriver } from './docker-driver.js';
import { Names } from './names.js';
import type { EngineAddress } from './engine-connection.js';
import { startPodmanCluster, type PodmanCluster } from './podman-cluster-fixture.js';

const someRef = (): ObjectRef => ({ kind: 'pod', id: randomUUID(), run: 1 });
const driverAt = (address: EngineAddress) =>
  new DockerDriver({ installationId: randomUUID(), address, publicHost: '127.0.0.1', doorImage: podmanImage });
const observe = (driver: DockerDriver, signal = soon()) => driver.observePods([someRef()], signal);

describe('an engine that does not answer as it should', () => {
  let folder: string;
  beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), 'atoll-engine-'))));
  afterAll(() => rm(folder, { recursive: true }));

  /** An engine that says its version and answers everything else in this way. */
  async function standIn(
    answer: Parameters<typeof createHttpServer>[1],
  ): Promise<{ socketPath: string; server: Server }> {
    const socketPath = join(folder, `${randomUUID().slice(0, 8)}.sock`);
    const server = createHttpServer((request, response) => {
      if (request.url?.startsWith('/_ping'))
        response.writeHead(200, { 'Api-Version': '1.48', Server: 'Docker/28.0 (linux)' }).end('OK');
      else answer?.(request, response);
    }).listen(socketPath);
    await once(server, 'listening');
    return { socketPath, server };
  }

  it('is told as unreachable where nothing listens, in every call and in the check', async () => {
    const driver = driverAt({ socketPath: join(folder, 'nothing.sock') });
    expect(await codeOf(observe(driver))).toBe('unreachable');
    expect(await codeOf(driver.remove(someRef(), soon()))).toBe('unreachable');
    expect(await driver.check(soon())).toMatchObject([
      { name: 'reachable', ok: false, isVital: true, howToFix: expect.any(String) },
    ]);
    await driver.close();
  });

  it('is known by the head of /_ping alone, and asked for its description once in a check and the look that follows', async () => {
    const asked: string[] = [];
    const { server, socketPath } = await standIn((request, response) => {
      const path = (request.url ?? '').replace(/\?.*$/, '');
      asked.push(path);
      // Never answers where a busy Podman takes seconds.
      if (path.endsWith('/version')) return;
      response.end(
        JSON.stringify({
          ID: 'engine-1',
          Name: 'host',
          DockerRootDir: '/',
          MemoryLimit: true,
          CpuCfsQuota: true,
          PidsLimit: true,
          CDISpecDirs: ['/etc/cdi'],
        }),
      );
    });
    const driver = driverAt({ socketPath });
    const signal = soon();
    const checks = await driver.check(signal);
    expect(checks).toContainEqual(
      expect.objectContaining({ name: 'version', ok: true, detail: 'Engine 28.0, API 1.48.' }),
    );
    expect(await driver.identify(signal)).toBe('engine-1');
    expect(asked.filter((path) => path.endsWith('/info'))).toEqual(['/v1.47/info']);
    await driver.identify(soon());
    expect(asked.filter((path) => path.endsWith('/info'))).toHaveLength(2);
    await driver.close();
    server.close();
  });

  it.each([[null], [[]], [undefined]])('without CDI (%j) gives no slices of real GPUs, and says so', async (found) => {
    const info = { ID: 'engine-1', Name: 'host', DockerRootDir: '/', CDISpecDirs: found };
    const { server, socketPath } = await standIn((_request, response) => void response.end(JSON.stringify(info)));
    const driver = driverAt({ socketPath });
    expect(await driver.check(soon())).toContainEqual(
      expect.objectContaining({
        name: 'version',
        ok: true,
        detail: 'Engine 28.0, API 1.48. Without CDI: it gives pods no slices of real GPUs.',
      }),
    );
    await driver.close();
    server.close();
  });

  it('is told apart from one with other certificates where the process may not open its socket, with what to do', async () => {
    const { server, socketPath } = await standIn(undefined);
    await chmod(folder, 0o755);
    await chmod(socketPath, 0o600);
    const driver = driverAt({ socketPath });
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    else await chmod(socketPath, 0);
    const [check] = await driver.check(soon()).finally(() => isRoot && process.seteuid?.(0));
    expect(check).toMatchObject({
      name: 'reachable',
      ok: false,
      isVital: true,
      howToFix: expect.stringContaining('group_add'),
    });
    expect(check?.detail).toBe('Atoll may not open the socket of the container engine.');
    await driver.close();
    server.close();
  });

  it('passes on neither the text of an answer with status 500 nor the path of its socket', async () => {
    const { server, socketPath } = await standIn((_, response) => {
      response.statusCode = 500;
      response.end(JSON.stringify({ message: 'open /var/lib/docker/secret: input/output error' }));
    });
    const driver = driverAt({ socketPath });
    const error: unknown = await observe(driver).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'unreachable', isPermanent: false });
    expect((error as Error).message).not.toMatch(/\/var\/lib|sock/);
    await driver.close();
    server.close();
  });

  it('is told as unreachable where it answers what is no JSON, and where it breaks off', async () => {
    for (const end of ['<html>', null]) {
      const { server, socketPath } = await standIn((_, response) => {
        response.writeHead(200, { 'Content-Length': 100 });
        response.write(end ?? '{');
        response.destroy();
      });
      const driver = driverAt({ socketPath });
      expect(await codeOf(observe(driver))).toBe('unreachable');
      await driver.close();
      server.close();
    }
  });

  it('is told as unreachable where an answer is longer than any that is needed, before its end', async () => {
    const { server, socketPath } = await standIn((_, response) => response.write(Buffer.alloc(65 * 1024 * 1024, '[')));
    const driver = driverAt({ socketPath });
    await expect(driver.identify(soon())).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.not.stringContaining('did not answer within'),
    });
    await driver.close();
    server.close();
  });

  it('finishes a removal that a crash of the engine cut short, though the engine cannot say any more what is left', async () => {
    const removed: string[] = [];
    const { server, socketPath } = await standIn((request, response) => {
      const [, name = ''] = /containers\/([^/?]+)/.exec(request.url ?? '') ?? [];
      if (request.method === 'DELETE') removed.push(name);
      response.statusCode = request.method === 'DELETE' ? 204 : 500;
      // As Podman 4.3 answers an inspect of a container whose storage is gone and whose record is not.
      response.end(
        request.method === 'DELETE'
          ? ''
          : JSON.stringify({ message: 'getting container from store "4f0e": container not known' }),
      );
    });
    const driver = driverAt({ socketPath });
    const [pod, door] = [someRef(), { ...someRef(), kind: 'door' as const }];
    for (const ref of [pod, door]) await driver.remove(ref, soon());
    expect(removed).toEqual([expect.stringContaining(`pod-${pod.id}`), expect.stringContaining(`door-${door.id}`)]);
    await driver.close();
    server.close();
  });

  it('delays nobody’s own end: a call ends with its signal, and 1,000 of them hold no more than a few connections', async () => {
    let connections = 0;
    const { server, socketPath } = await standIn(() => undefined);
    server.on('connection', () => (connections += 1));
    const driver = driverAt({ socketPath });
    const stop = new AbortController();
    const calls = Array.from({ length: 1_000 }, () => codeOf(observe(driver, stop.signal)));
    await eventually(async () =>
      (await new Promise<number>((done) => server.getConnections((_, count) => done(count)))) > 1 ? true : undefined,
    );
    stop.abort();
    expect(new Set(await Promise.all(calls))).toEqual(new Set(['timeout']));
    expect(connections).toBeLessThan(40);
    await driver.close();
    server.closeAllConnections();
    server.close();
  });
});

describeWhere(podmanLacks(), 'faults of a real engine', () => {
  let cluster: PodmanCluster;
  let here: Installation;
  beforeAll(async () => {
    cluster = await startPodmanCluster();
    here = new Installation(cluster);
  });
  afterAll(async () => {
    await here?.leave();
    await cluster?.stop();
  });

  it('keeps pods and doors through an engine that is away, and finds them again with the same driver', async () => {
    const pod = await here.startRunning(here.programs.serves);
    const door = await here.open(here.door(pod, await freePort()));
    await cluster.podman.kill();
    expect(await codeOf(here.driver.observePods([pod.ref], soon()))).toBe('unreachable');
    expect(await codeOf(here.driver.startPod(here.pod(here.programs.idle), wanted, soon()))).toBe('unreachable');
    expect(await eventually(() => greeting('127.0.0.1', door.externalPort))).toBe(pod.podName);
    await cluster.podman.restart();
    expect((await here.seen(pod, 'running')).phase).toBe('running');
    await here.remove(door, pod);
  });

  it('ends a call to an engine that is frozen with its signal, and goes on when it wakes', async () => {
    const pod = await here.startRunning(here.programs.idle);
    cluster.podman.pause();
    expect(await codeOf(here.driver.observePods([pod.ref], AbortSignal.timeout(200)))).toBe('timeout');
    cluster.podman.resume();
    expect((await here.observePod(pod)).phase).toBe('running');
    await here.remove(pod);
  });

  it('is told from an engine on the same socket with other storage', async () => {
    const other = await startPodmanCluster();
    const [one, two] = [here.driver, other.open(here.id)];
    expect(await two.identify(soon())).not.toBe(await one.identify(soon()));
    await two.close();
    await other.stop();
  });

  it('works over TLS with client certificates, streams and shells too, and refuses a certificate of another issuer', async () => {
    const issuer = await createCertificate('issuer.test');
    const [server, client, foreign] = await Promise.all([
      createCertificate('localhost', issuer),
      createCertificate('atoll', issuer),
      createCertificate('stranger'),
    ]);
    // As dockerd behind --tlsverify: bytes pass to the socket of the real engine.
    const pipe = (outer: TLSSocket) => {
      const inner = connect({ path: cluster.podman.socketPath, allowHalfOpen: true });
      outer.on('error', () => inner.destroy()).on('close', () => inner.destroy());
      inner.on('error', () => outer.destroy()).on('close', () => outer.destroy());
      outer.pipe(inner).pipe(outer);
    };
    const tls = {
      cert: server.certificate,
      key: server.key,
      ca: issuer.certificate,
      requestCert: true,
      rejectUnauthorized: true,
      allowHalfOpen: true,
    };
    const front = createTlsServer(tls, pipe)
      .on('tlsClientError', () => undefined)
      .listen(0, '127.0.0.1');
    await once(front, 'listening');
    const url = `https://127.0.0.1:${(front.address() as AddressInfo).port}`;
    const at = (identity: typeof client, ca = issuer) => ({
      url,
      ca: ca.certificate,
      certificate: identity.certificate,
      key: identity.key,
    });

    const far = new Installation({ ...cluster, open: (id) => cluster.open(id, { address: at(client) }) });
    const pod = await far.startRunning(far.programs.idle);
    const shell = await far.driver.openShell(pod.ref, { command: ['cat'], terminal: null, env: new Map() }, soon());
    shell.stderr.resume();
    shell.stdin.end('over TLS');
    expect(await text(shell.stdout)).toBe('over TLS');
    await far.leave();
    const [refused, mistrusted] = [driverAt(at(foreign)), driverAt(at(client, foreign))];
    // dockerd sends an alert; a server of Node resets the connection.
    expect(await codeOf(observe(refused))).toMatch(/^(unauthorised|unreachable)$/);
    expect(await codeOf(observe(mistrusted))).toBe('unauthorised');
    await Promise.all([refused.close(), mistrusted.close()]);
    front.close();
  });

  it('says that the engine’s disk is full, and starts the pod when there is room again', async () => {
    const small = await startPodmanCluster({ diskBytes: 64_000_000 });
    const tenant = new Installation(small);
    const volume = tenant.volume();
    await tenant.driver.makeVolume(volume, soon());
    const volumes = [{ volumeId: volume.ref.id, path: '/data' }];
    const hog = tenant.pod(tenant.programs.fills!('/data/file', 200_000_000), { owner: ownerOf(volume), volumes });
    await tenant.start(hog);
    const next = tenant.pod(tenant.programs.idle);
    const code = await eventually(async () => {
      const failure = await codeOf(tenant.driver.startPod(next, wanted, soon())).catch(() => undefined);
      if (failure === undefined) await tenant.remove(next);
      return failure;
    });
    expect(code).toBe('no_space');
    // By hand: Podman itself removes no container from a full disk.
    const path = await small.podman.cli(
      'volume',
      'inspect',
      '--format',
      '{{.Mountpoint}}',
      new Names(tenant.id).of(volume.ref),
    );
    await rm(join(path.trim(), 'file'));
    await tenant.start(next);
    await tenant.remove(hog, volume);
    await tenant.leave();
    await small.stop();
  });
});
