import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { baseTree, describeWhere, freePort, podmanImage, podmanLacks } from '@atoll/testing';
import { codeOf, eventually, Installation, ownerOf, soon, wanted } from '../contract/cluster-under-test-fixture.js';
import type { PodRun, PodSlice } from '../objects.js';
import type { Trouble } from '../observations.js';
import type { DockerDriver } from './docker-driver.js';
import { Names } from './names.js';
import { startPodmanCluster, type PodmanCluster } from './podman-cluster-fixture.js';

const cdiFolder = '/var/run/cdi';
const kind = `atoll.test/gpu-${randomUUID().slice(0, 8)}`;
const presentGpu = 'GPU-6d3c1b1e-0000-0000-0000-000000000001';
const missingGpu = 'GPU-6d3c1b1e-0000-0000-0000-00000000000f';

interface Inspected {
  readonly Id: string;
  readonly State: { readonly Pid: number; readonly ConmonPid: number };
  readonly HostConfig: Record<string, unknown> & {
    readonly NetworkMode: string;
    readonly SecurityOpt: readonly string[];
  };
  readonly Mounts: readonly { readonly Type: string }[];
  readonly Config: { readonly Image: string; readonly Healthcheck?: { readonly Test: readonly string[] } };
}

const bash = (text: string) => ({ image: podmanImage, command: ['bash', '-c', text] });

describeWhere(podmanLacks(), 'pods and doors as containers on Podman', () => {
  let cluster: PodmanCluster;
  let here: Installation;
  const cdiFile = join(cdiFolder, `${kind.replace('/', '-')}.json`);

  beforeAll(async () => {
    cluster = await startPodmanCluster();
    // The driver whose slices are devices of a CDI file that this spec has made up.
    const open = (id: string): DockerDriver =>
      cluster.open(id, {
        cdiDeviceOf: ({ gpuUuid }) => `${kind}=${gpuUuid}`,
        logWaits: { lookMs: 2_000 },
      });
    here = new Installation({ ...cluster, open });
    await mkdir(cdiFolder, { recursive: true });
    const devices = [
      {
        name: presentGpu,
        containerEdits: {
          env: [`CDI_GPU=${presentGpu}`],
          deviceNodes: [{ path: '/dev/atoll0', hostPath: '/dev/null' }],
        },
      },
    ];
    await writeFile(cdiFile, JSON.stringify({ cdiVersion: '0.5.0', kind, devices }));
  });

  afterAll(async () => {
    await rm(cdiFile, { force: true });
    await here?.leave();
    await cluster?.stop();
  });

  const inspect = async (pod: { ref: PodRun['ref'] }): Promise<Inspected> => {
    const [found] = JSON.parse(await cluster.podman.cli('inspect', new Names(here.id).of(pod.ref))) as Inspected[];
    return found!;
  };
  const output = async (pod: PodRun): Promise<string[]> => {
    await here.start(pod, 'ended');
    const lines = await here.readAll(pod);
    await here.remove(pod);
    return lines.map(({ message }) => message);
  };
  const troubleOf = (pod: PodRun, by = here): Promise<Trouble> =>
    eventually(async () => {
      await by.driver.startPod(pod, wanted, soon());
      const sight = await by.observePod(pod);
      return sight.phase === 'preparing' && sight.trouble ? sight.trouble : undefined;
    });

  it('confines a pod: no privilege, no host network, no host path, a seccomp filter, no way to more rights', async () => {
    const volume = here.volume();
    await here.driver.makeVolume(volume, soon());
    const pod = await here.startRunning(here.programs.idle, {
      owner: ownerOf(volume),
      volumes: [{ volumeId: volume.ref.id, path: '/data' }],
    });
    const { HostConfig, Mounts, State } = await inspect(pod);
    expect(HostConfig).toMatchObject({ Privileged: false, PublishAllPorts: false, Devices: [] });
    expect(HostConfig.NetworkMode).not.toMatch(/host|container/);
    expect(Mounts.map(({ Type }) => Type)).toEqual(['volume']);
    const status = await readFile(`/proc/${State.Pid}/status`, 'utf8');
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/^Seccomp:\t2$/m);
    const effective = BigInt(`0x${/^CapEff:\t(\w+)$/m.exec(status)?.[1]}`);
    // linux/capability.h: NET_ADMIN 12, NET_RAW 13, SYS_MODULE 16, SYS_PTRACE 19, SYS_ADMIN 21, MKNOD 27
    expect([12n, 13n, 16n, 19n, 21n, 27n].filter((bit) => (effective >> bit) & 1n)).toEqual([]);
    await here.remove(pod, volume);
  });

  it('confines a door likewise, and more: read-only, without a single capability, not as root', async () => {
    const pod = await here.startRunning(here.programs.serves);
    const door = await here.open(here.door(pod, await freePort()));
    const { HostConfig, State } = await inspect(door);
    expect(HostConfig).toMatchObject({ Privileged: false, ReadonlyRootfs: true });
    const status = await readFile(`/proc/${State.Pid}/status`, 'utf8');
    expect(status).toMatch(/^CapEff:\t0+$/m);
    expect(status).toMatch(/^Uid:\t65534\t/m);
    await here.remove(door, pod);
  });

  it('starts a run anew where one of the same number is there from another time, as after a restore', async () => {
    const forgotten = await here.startRunning(here.programs.idle);
    const id = async () => (await inspect(forgotten)).Id;
    const before = await id();
    await here.start(forgotten);
    expect(await id()).toBe(before);
    await here.start({ ...forgotten, requestedAt: new Date(0) });
    expect(await id()).not.toBe(before);
    await here.remove(forgotten);
  });

  it('runs no health check of an image: the engine would start one after the other, outside of all limits', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'atoll-image-'));
    const image = `localhost/atoll-checked-${randomUUID()}:1`;
    await writeFile(join(folder, 'Dockerfile'), `FROM ${podmanImage}\nHEALTHCHECK --interval=1s CMD ["/bin/true"]\n`);
    await cluster.podman.cli('build', '--quiet', '--format', 'docker', '--tag', image, folder);
    await rm(folder, { recursive: true });
    const pod = await here.startRunning({ ...here.programs.idle, image });
    expect((await inspect(pod)).Config.Healthcheck?.Test ?? ['NONE']).toEqual(['NONE']);
    await here.remove(pod);
    await cluster.podman.cli('rmi', image);
  });

  it('limits memory, CPU and processes', async () => {
    const pod = await here.startRunning(here.programs.idle, { cpu: 0.5, memoryGb: 0.25 });
    const { HostConfig } = await inspect(pod);
    expect(HostConfig).toMatchObject({
      Memory: 250_000_000,
      MemorySwap: 250_000_000,
      NanoCpus: 500_000_000,
      PidsLimit: 4_096,
    });
    await here.remove(pod);
  });

  it('tells of a run that was killed under its memory limit, and not of one whose end was requested', async () => {
    const hungry = here.pod(bash('exec tail /dev/zero'), { memoryGb: 0.05 });
    await here.start(hungry, 'ended');
    const { exit } = await here.seen(hungry, 'ended');
    expect(exit).toMatchObject({ code: 137 });
    expect(exit.outOfMemory).toMatch(/^(yes|probably)$/);
    const stubborn = await here.startSpeaking(here.programs.stubborn);
    await here.driver.stopPod(stubborn.ref, 0, soon());
    expect((await here.seen(stubborn, 'ended')).exit).toMatchObject({ code: 137, outOfMemory: 'no' });
    await here.remove(hungry, stubborn);
  });

  it('ends a run whose conmon was killed, and the reading of its log', async () => {
    const pod = await here.startRunning(here.programs.idle);
    const reading = here.driver.readLogs(pod.ref, null, soon())[Symbol.asyncIterator]();
    expect((await reading.next()).value).toMatchObject({ lines: [], isCurrent: true });
    process.kill((await inspect(pod)).State.ConmonPid, 'SIGKILL');
    const sight = await eventually(async () => {
      await here.driver.stopPod(pod.ref, 0, soon());
      const now = await here.observePod(pod);
      return now.phase === 'stopping' || now.phase === 'running' ? undefined : now;
    });
    expect(sight).toEqual({ phase: 'absent' });
    expect(await here.listed()).not.toContainEqual(pod.ref);
    const readOn = async () => {
      while (!(await reading.next()).done);
    };
    expect(await codeOf(readOn())).toBe('not_found');
  });

  it('gives a pod the device of its slice, by uuid through CDI', async () => {
    const script = bash('echo "$CDI_GPU $NVIDIA_VISIBLE_DEVICES"; test -c /dev/atoll0 && echo device');
    const pod = here.pod(script, { slices: [slice({ gpuUuid: presentGpu })] });
    expect(await output(pod)).toEqual([`${presentGpu} void`, 'device']);
  });

  it('starts no pod without a device of its slice that the node does not have', async () => {
    const pod = here.pod(here.programs.idle, { slices: [slice({ gpuUuid: missingGpu })] });
    expect(await codeOf(here.driver.startPod(pod, wanted, soon()))).toBe('slice_missing');
    expect((await here.observePod(pod)).phase).not.toBe('running');
    await here.remove(pod);
  });

  it('gives a pod on a simulated node the name of its slice, and no device', async () => {
    const script = bash('echo "$ATOLL_SLICES"; ls /dev | grep -c atoll');
    const pod = here.pod(script, { slices: [slice({ isSimulated: true, profile: '1g.10gb', slotStart: 3 })] });
    expect(await output(pod)).toEqual([`${presentGpu}:1g.10gb@3`, '0']);
  });

  it('pulls an image once for all pods that wait for it, and says how far it is', async () => {
    await cluster.registry.offer('tools/box', { 'bin/sh': await readFile(join(baseTree, 'bin/busybox')) }, [
      '/bin/sh',
      '-c',
      'echo pulled; exit 4',
    ]);
    const goOn = cluster.registry.stall();
    const pods = [1, 2, 3].map(() => here.pod({ image: `${cluster.registry.host}/tools/box:1`, command: [] }));
    await Promise.all(pods.map((pod) => here.driver.startPod(pod, wanted, soon())));
    expect((await here.observePod(pods[0]!)).phase).toBe('preparing');
    goOn();
    for (const pod of pods) {
      await here.start(pod, 'ended');
      expect((await here.seen(pod, 'ended')).exit.code).toBe(4);
    }
    expect(cluster.registry.asked.get('tools/box')).toBeLessThanOrEqual(2);
    await here.remove(...pods);
  });

  it('says that a registry wants a log-in, and does not ask again at each request', async () => {
    cluster.registry.lock('private/model');
    const pod = here.pod({ image: `${cluster.registry.host}/private/model:1`, command: [] });
    expect(await troubleOf(pod)).toMatchObject({
      code: 'image_needs_login',
      message: expect.stringContaining('log-in'),
    });
    await here.remove(pod);
  });

  it('gives up a pull whose registry sends nothing any more', async () => {
    await cluster.registry.offer('slow/box', { 'bin/sh': Buffer.alloc(3_000_000, 7), 'bin/more': randomUUID() }, [
      '/bin/sh',
    ]);
    const goOn = cluster.registry.stall();
    const hasty = new Installation({ ...cluster, open: (id) => cluster.open(id, { pullStallMs: 1_000 }) });
    const pod = hasty.pod({ image: `${cluster.registry.host}/slow/box:1`, command: [] });
    expect((await troubleOf(pod, hasty)).code).toBe('unreachable');
    goOn();
    await hasty.remove(pod);
    await hasty.leave();
  });

  it('ends a run whose image does not have the command, and its log says so', async () => {
    const pod = here.pod({ image: podmanImage, command: ['/no/such/program'] });
    await here.start(pod, 'ended');
    expect((await here.seen(pod, 'ended')).exit.code).not.toBe(0);
    expect((await here.readAll(pod)).map(({ message }) => message).join('\n')).toContain('No such file');
    await here.remove(pod);
  });

  it('refuses a run of an image without a command where none is set', async () => {
    await cluster.registry.offer('tools/bare', { 'bin/sh': '' }, []);
    const pod = here.pod({ image: `${cluster.registry.host}/tools/bare:1`, command: [] });
    const start = async (): Promise<undefined> => void (await here.driver.startPod(pod, wanted, soon()));
    const refused = { code: 'invalid', message: 'The image names no command: set one.' };
    await expect(eventually(start)).rejects.toMatchObject(refused);
    await here.remove(pod);
  });

  it('touches no container that has the name and is not ours', async () => {
    const pod = here.pod(here.programs.idle);
    const name = new Names(here.id).of(pod.ref);
    await cluster.podman.cli('create', '--name', name, podmanImage, 'true');
    expect(await codeOf(here.driver.startPod(pod, wanted, soon()))).toBe('invalid');
    expect(await codeOf(here.driver.remove(pod.ref, soon()))).toBe('invalid');
    expect(await here.listed()).not.toContainEqual(pod.ref);
    await cluster.podman.cli('rm', name);
  });

  it('removes what a workspace no longer needs of its network', async () => {
    const pod = await here.startRunning(here.programs.idle);
    const network = new Names(here.id).network(pod.owner.workspaceId);
    expect(await cluster.podman.cli('network', 'ls', '--format', '{{.Name}}')).toContain(network);
    await here.remove(pod);
    expect(await cluster.podman.cli('network', 'ls', '--format', '{{.Name}}')).not.toContain(network);
  });
});

function slice(more: Partial<PodSlice>): PodSlice {
  const mig = { slotStart: null, instanceId: null, instanceUuid: null };
  const place = { leaseId: '7', nodeName: 'node-1', gpuUuid: presentGpu, board: 'H100-80GB', profile: 'H100-80GB' };
  return { ...place, ...mig, isSimulated: false, ...more };
}
