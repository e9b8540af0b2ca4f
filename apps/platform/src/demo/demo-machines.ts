import type { DemoApi } from './demo-api.js';
import type { DemoTeam } from './demo-teams.js';

/** Ids of the regions of the demo. */
export interface Regions {
  north: string;
  south: string;
}

interface VolumePlan {
  team: string;
  workspace: string;
  name: string;
  region: keyof Regions;
  sizeGb: number;
  /** Its size once its pods have run. */
  growsToGb?: number;
}

interface VmPlan {
  team: string;
  workspace: string;
  name: string;
  region: keyof Regions;
  flavour: string;
  image: string;
  restarts: boolean;
  /** Name of a volume of the same team. */
  mounts?: string;
  isStopped?: boolean;
}

const debian = 'docker.io/library/debian:13';

const volumePlans: readonly VolumePlan[] = [
  { team: 'Protein Lab', workspace: 'folding', name: 'structures', region: 'north', sizeGb: 1, growsToGb: 2 },
  { team: 'Protein Lab', workspace: 'teaching', name: 'course-homes', region: 'north', sizeGb: 1, growsToGb: 2 },
  { team: 'Nimbus Robotics', workspace: 'training', name: 'warehouse-frames', region: 'north', sizeGb: 400 },
  { team: 'Ledger Analytics', workspace: 'models', name: 'features', region: 'south', sizeGb: 1, growsToGb: 2 },
];

const vmPlans: readonly VmPlan[] = [
  {
    team: 'Protein Lab',
    workspace: 'folding',
    name: 'login-node',
    region: 'north',
    flavour: 'standard-4',
    image: debian,
    restarts: true,
    mounts: 'structures',
  },
  {
    team: 'Nimbus Robotics',
    workspace: 'default',
    name: 'robot-gateway',
    region: 'south',
    flavour: 'standard-4',
    image: 'docker.io/library/eclipse-mosquitto:2.0',
    restarts: true,
  },
  {
    team: 'Nimbus Robotics',
    workspace: 'training',
    name: 'label-review',
    region: 'north',
    flavour: 'standard-2',
    image: debian,
    restarts: false,
    mounts: 'warehouse-frames',
    isStopped: true,
  },
  {
    team: 'Ledger Analytics',
    workspace: 'models',
    name: 'feature-store',
    region: 'south',
    flavour: 'memory-8',
    image: 'docker.io/pytorch/pytorch:2.9.0-cuda13.0-cudnn9-runtime',
    restarts: true,
    mounts: 'features',
  },
];

const flavours = [
  { name: 'standard-2', vcpus: 2, memory_gb: 8 },
  { name: 'standard-4', vcpus: 4, memory_gb: 16 },
  { name: 'memory-8', vcpus: 8, memory_gb: 64 },
];

/** By team and name. */
export type DemoVolumes = ReadonlyMap<string, string>;
export const volumeKey = (team: string, name: string): string => `${team} ${name}`;

/** Shared volumes, once they can be mounted. */
export async function makeVolumes(api: DemoApi, teams: readonly DemoTeam[], regions: Regions): Promise<DemoVolumes> {
  const made = volumePlans.map(async ({ team: teamName, workspace, name, region, sizeGb }) => {
    const body = { ...placeOf(teams, teamName, workspace), region_id: regions[region], name, size_in_gb: sizeGb };
    const { volume_id } = await api.post<{ volume_id: string }>('/shared-volumes', body);
    await api.until<{ status: string }>(`/shared-volumes/${volume_id}`, ({ status }) => status === 'active');
    return [volumeKey(teamName, name), volume_id] as const;
  });
  return new Map(await Promise.all(made));
}

/** Makes those larger that are to grow: then the platform has looked at what was written to them. */
export async function growVolumes(api: DemoApi, volumes: DemoVolumes): Promise<void> {
  const growing = volumePlans.filter(({ growsToGb }) => growsToGb !== undefined);
  await Promise.all(
    growing.map(async ({ team, name, growsToGb }) => {
      const path = `/shared-volumes/${volumes.get(volumeKey(team, name))}`;
      await api.call('PUT', path, { size_in_gb: growsToGb });
      await api.until<{ size_in_gb: number }>(path, ({ size_in_gb }) => size_in_gb === growsToGb);
    }),
  );
}

/** Flavours, and VMs of them: each in the state in which it is left. */
export async function makeVms(
  api: DemoApi,
  teams: readonly DemoTeam[],
  regions: Regions,
  volumes: DemoVolumes,
): Promise<void> {
  for (const flavour of flavours) await api.post('/vm/flavour', flavour);
  await Promise.all(
    vmPlans.map(async ({ team, workspace, name, region, flavour, image, restarts, mounts, isStopped }) => {
      const mounted = mounts === undefined ? [] : [{ volume_id: volumes.get(volumeKey(team, mounts)), path: '/data' }];
      const body = {
        ...placeOf(teams, team, workspace),
        region_id: regions[region],
        name,
        flavour,
        image,
        auto_restart: restarts,
      };
      const { instance_id } = await api.post<{ instance_id: string }>('/vm', { ...body, volumes: mounted });
      const comesTo = (wanted: string) =>
        api.until<{ status: string }>(`/vm/${instance_id}`, ({ status }) => status === wanted);
      await comesTo('running');
      if (!isStopped) return;
      await api.post(`/vm/${instance_id}/stop`);
      await comesTo('stopped');
    }),
  );
}

const hosts = [
  {
    name: 'oslo-metal-01',
    region: 'north',
    specs: { gpu_model: 'A100-80GB', gpu_count: 4, cpu_cores: 96, memory_gb: 768 },
  },
  // Its provisioning fails, and is undone.
  {
    name: 'mumbai-metal-01.password-fail',
    region: 'south',
    specs: { gpu_model: 'L40S-48GB', gpu_count: 4, cpu_cores: 64, memory_gb: 512 },
  },
  {
    name: 'mumbai-metal-02',
    region: 'south',
    specs: { gpu_model: 'H100-80GB', gpu_count: 8, cpu_cores: 192, memory_gb: 2048 },
  },
  {
    name: 'mumbai-metal-03',
    region: 'south',
    specs: { gpu_model: 'A30-24GB', gpu_count: 2, cpu_cores: 48, memory_gb: 256 },
  },
] as const;

const requests = [
  { team: 'Nimbus Robotics', workspace: 'training', name: 'hyper-sweep', gpu_model: 'A100-80GB', ends: 'Active' },
  { team: 'Protein Lab', workspace: 'folding', name: 'cryo-em', gpu_model: 'H100-80GB', ends: 'Active' },
  { team: 'Ledger Analytics', workspace: 'models', name: 'retraining', gpu_model: 'L40S-48GB', ends: 'Failed' },
] as const;

/**
 * Bare-metal hosts: two with a tenant, one on which a request has failed, and one that is free; and a request that
 * waits for one in use.
 */
export async function makeBaremetal(api: DemoApi, teams: readonly DemoTeam[], regions: Regions): Promise<void> {
  await Promise.all(
    hosts.map(async ({ region, ...host }) => {
      const credential = { password: 'of-no-host' };
      const body = {
        ...host,
        region_id: regions[region],
        host: `${host.name.split('.', 1)[0]}.example`,
        driver: 'simulated',
        credential,
      };
      const { node_id } = await api.post<{ node_id: string }>('/baremetal/node', body);
      await api.until<{ status: string }>(`/baremetal/node/${node_id}`, ({ status }) => status === 'Available');
    }),
  );
  await Promise.all(
    requests.map(async ({ team, workspace, name, gpu_model, ends }) => {
      const body = { ...placeOf(teams, team, workspace), name, specs: { gpu_model } };
      const { instance_id } = await api.post<{ instance_id: string }>('/baremetal/request', body);
      await api.until<{ status: string }>(`/baremetal/${instance_id}`, ({ status }) => status === ends);
    }),
  );
  const waiting = {
    ...placeOf(teams, 'Ledger Analytics', 'models'),
    name: 'year-end-scoring',
    specs: { gpu_model: 'A100-80GB' },
  };
  await api.post('/baremetal/request', waiting);
}

function placeOf(
  teams: readonly DemoTeam[],
  name: string,
  workspace: string,
): { team_id?: string; workspace_id?: string } {
  const team = teams.find((candidate) => candidate.name === name);
  if (!team) throw new Error(`The demo has no team ${name}.`);
  return { team_id: team.teamId, workspace_id: team.workspaces.get(workspace) };
}
