import type { DemoApi } from './demo-api.js';

export interface PodPlan {
  name: string;
  image: string;
  vgpus?: number;
  command?: string[];
  env?: Record<string, string>;
  /** Ports that are exposed, by the names of their services. */
  exposes?: Record<string, number>;
  restart?: 'never';
  /** A shared volume of its team, by its name, at /data. */
  mounts?: string;
  /** The state in which it is left. */
  ends?: 'failed' | 'stopped';
}

interface Holding {
  team: string;
  workspace: string;
  pool: string;
  name: string;
  vgpus: number;
  profile?: string;
  /** Names of workloads that run on it by themselves. */
  runs?: readonly string[];
  pods?: readonly PodPlan[];
}

const pytorch = 'docker.io/pytorch/pytorch:2.9.0-cuda13.0-cudnn9-runtime';
const jupyter = 'quay.io/jupyter/pytorch-notebook:cuda12-2026-10-05';
const vllm = 'docker.io/vllm/vllm-openai:v0.12.0';

const notebook = (name: string): PodPlan => ({
  name,
  image: jupyter,
  exposes: { jupyter: 8888 },
  mounts: 'course-homes',
});
const model = (name: string): PodPlan => ({ name, image: vllm, env: { HF_TOKEN: 'hf_demo' }, exposes: { api: 8000 } });
const job = (name: string): PodPlan => ({ name, image: pytorch, command: ['python', 'train.py'] });

/** What the teams hold, and what runs on it now. */
export const holdings: readonly Holding[] = [
  {
    team: 'Protein Lab',
    workspace: 'folding',
    pool: 'a100-slices',
    name: 'folding',
    vgpus: 3,
    profile: '3g.40gb',
    pods: [
      { ...job('fold-batch-12'), mounts: 'structures' },
      { ...job('fold-batch-13'), mounts: 'structures', ends: 'stopped' },
      { ...job('fold-oom'), restart: 'never', ends: 'failed' },
    ],
  },
  {
    team: 'Protein Lab',
    workspace: 'teaching',
    pool: 'a100-slices',
    name: 'course',
    vgpus: 5,
    profile: '1g.10gb',
    runs: ['grader'],
    pods: [notebook('notebook-ada'), notebook('notebook-mei')],
  },
  {
    team: 'Nimbus Robotics',
    workspace: 'training',
    pool: 'h100-large',
    name: 'vision',
    vgpus: 1,
    profile: '7g.80gb',
    pods: [{ ...job('yolo-finetune'), exposes: { tensorboard: 6006 } }],
  },
  { team: 'Nimbus Robotics', workspace: 'training', pool: 'h100-large', name: 'depth', vgpus: 1, profile: '3g.40gb' },
  {
    team: 'Nimbus Robotics',
    workspace: 'inference',
    pool: 'l40s-shared',
    name: 'serving',
    vgpus: 5,
    pods: [model('pick-api'), model('place-api'), model('map-api')],
  },
  {
    team: 'Nimbus Robotics',
    workspace: 'inference',
    pool: 'a100-elastic',
    name: 'burst',
    vgpus: 6,
    runs: Array.from({ length: 5 }, (_, at) => `burst-${at + 1}`),
  },
  {
    team: 'Ledger Analytics',
    workspace: 'models',
    pool: 'l4-turns',
    name: 'fraud',
    vgpus: 6,
    runs: ['drift-watch'],
    pods: [
      { ...job('score-live'), exposes: { scores: 8080 }, mounts: 'features' },
      { ...job('score-batch'), mounts: 'features' },
    ],
  },
  {
    team: 'Ledger Analytics',
    workspace: 'models',
    pool: 'a100-slices',
    name: 'embeddings',
    vgpus: 1,
    profile: '2g.20gb',
    pods: [job('embed')],
  },
];

interface Pod {
  pod_name: string;
  status: string;
}

/** Creates the pods of a subscription, and returns when each is as planned and its services are open. */
export async function startPods(
  api: DemoApi,
  {
    teamId,
    subscriptionId,
    volumeOf,
  }: { teamId: string; subscriptionId: string; volumeOf: (name: string) => string | undefined },
  plans: readonly PodPlan[],
): Promise<void> {
  await Promise.all(
    plans.map(async ({ exposes = {}, ends, mounts, ...terms }) => {
      const ports = Object.values(exposes);
      const { pod_name } = await api.post<Pod>('/pods', {
        team_id: teamId,
        subscription_id: subscriptionId,
        ports,
        ...terms,
        ...(mounts !== undefined && { volumes: [{ volume_id: volumeOf(mounts), path: '/data' }] }),
      });
      await api.until<Pod>(`/pods/${pod_name}`, ({ status }) => status === (ends === 'failed' ? 'failed' : 'running'));
      if (ends === 'stopped') await api.post('/pods/action', { pod_name, action: 'stop' });
      for (const [service_name, port] of Object.entries(exposes)) {
        await api.post('/pods/expose-service', { pod_name, service_name, port, protocol: 'HTTP' });
      }
    }),
  );
}
