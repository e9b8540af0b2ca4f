import { expect, it } from '@jest/globals';
import type { PodRun, PodSlice } from '../objects.js';
import { dockerBody, libpodBody, type PodContainer } from './container-body.js';
import { Names } from './names.js';

const names = new Names('i1');
const slice: PodSlice = {
  ...{ leaseId: 'l1', nodeName: 'n1', gpuUuid: 'GPU-1', board: 'A100', profile: '1g.10gb', slotStart: 2 },
  ...{ instanceId: null, instanceUuid: null, isSimulated: false },
};
const run: PodRun = {
  ref: { kind: 'pod', id: 'p1', run: 1 },
  requestedAt: new Date('2026-11-30T08:15:20.123Z'),
  owner: { teamId: 't1', workspaceId: 'w1' },
  podName: 'swift-otter',
  image: 'docker.io/library/nginx:1.27',
  command: [],
  env: new Map([['NVIDIA_VISIBLE_DEVICES', 'all']]),
  cpu: 0.5,
  memoryGb: 0.25,
  slices: [slice, { ...slice, leaseId: 'l2', gpuUuid: 'GPU-2', slotStart: null, isSimulated: true }],
  volumes: [],
};
const container: PodContainer = {
  network: 'net',
  kind: 'docker',
  mounts: [{ source: 'v1', path: '/data' }],
  defaults: { cpu: 2, memoryGb: 4 },
  cdiDeviceOf: ({ gpuUuid }) => `nvidia.com/gpu=${gpuUuid}`,
};
/** linux/capability.h: none with which a workload reaches beyond its own files and processes. */
const capabilities = [
  ...['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'NET_BIND_SERVICE'],
  ...['SETFCAP', 'SETGID', 'SETUID', 'SYS_CHROOT'],
];
const slices = 'GPU-1:1g.10gb@2,GPU-2:1g.10gb';

it('Docker runs no health check, and confines a pod to its memory, CPU, processes, mounts and real slices', () => {
  const body = dockerBody(run, names, container);
  expect(body).toMatchObject({
    Healthcheck: { Test: ['NONE'] },
    Labels: names.podLabels(run),
    Env: ['NVIDIA_VISIBLE_DEVICES=void', `ATOLL_SLICES=${slices}`],
    NetworkingConfig: { EndpointsConfig: { net: { Aliases: ['pod-p1', 'swift-otter'] } } },
    HostConfig: {
      ...{ Privileged: false, CapDrop: ['ALL'], CapAdd: capabilities, SecurityOpt: ['no-new-privileges'] },
      ...{ IpcMode: 'private', NetworkMode: 'net', RestartPolicy: { Name: 'no' } },
      ...{ Memory: 250_000_000, MemorySwap: 250_000_000, ShmSize: 125_000_000 },
      ...{ NanoCpus: 500_000_000, PidsLimit: 4_096 },
      LogConfig: { Config: { 'max-size': '134217728', 'max-file': '4' } },
      Mounts: [{ Type: 'volume', Source: 'v1', Target: '/data' }],
      DeviceRequests: [{ Driver: 'cdi', DeviceIDs: ['nvidia.com/gpu=GPU-1'] }],
    },
  });
  expect(body).not.toHaveProperty('Entrypoint');
});

it('Podman does the same', () => {
  const body = libpodBody(run, names, { ...container, kind: 'podman' });
  expect(body).toMatchObject({
    healthconfig: { Test: ['NONE'] },
    labels: names.podLabels(run),
    env: { NVIDIA_VISIBLE_DEVICES: 'void', ATOLL_SLICES: slices },
    Networks: { net: { aliases: ['pod-p1', 'swift-otter'] } },
    ...{ no_new_privileges: true, cap_drop: ['ALL'], cap_add: capabilities },
    ...{ ipcns: { nsmode: 'private' }, netns: { nsmode: 'bridge' }, restart_policy: 'no' },
    resource_limits: {
      cpu: { quota: 50_000, period: 100_000 },
      memory: { limit: 250_000_000, swap: 250_000_000 },
      pids: { limit: 4_096 },
    },
    shm_size: 125_000_000,
    log_configuration: { size: 512 * 1024 * 1024 },
    volumes: [{ Name: 'v1', Dest: '/data' }],
    devices: [{ path: 'nvidia.com/gpu=GPU-1' }],
  });
  expect(body).not.toHaveProperty('privileged');
  expect(body).not.toHaveProperty('entrypoint');
});

it('a command replaces the entry point of an image, and the command too; what a run leaves out is the default', () => {
  const asked = { ...run, command: ['sh', '-c', 'true'], cpu: null, memoryGb: null, slices: [] };
  const [docker, podman] = [dockerBody(asked, names, container), libpodBody(asked, names, container)];
  expect(docker).toMatchObject({
    Entrypoint: asked.command,
    Cmd: [],
    HostConfig: { Memory: 4_000_000_000, NanoCpus: 2_000_000_000 },
  });
  expect(docker).not.toHaveProperty('HostConfig.DeviceRequests');
  expect(podman).toMatchObject({
    entrypoint: asked.command,
    command: [],
    devices: [],
    resource_limits: { cpu: { quota: 200_000 }, memory: { limit: 4_000_000_000 } },
  });
});
