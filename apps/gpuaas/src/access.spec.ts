import { afterAll, beforeAll } from '@jest/globals';
import { type Operation } from '@atoll/contracts';
import {
  baremetal,
  baremetalNodes,
  clusters,
  connections,
  gpuaasBatches,
  gpuHoldings,
  gpuServices,
  nodes,
  podUsages,
  podWorkloads,
  poolGpus,
  pools,
  regions,
  subscriptions,
  workloads,
} from '@atoll/contracts/gpuaas';
import { machines } from '@atoll/contracts/operator';
import { teamChanged, teamDeletionRequested } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { aTeam, describeAccess } from '@atoll/testing';
import { TeamCapacity } from './capacity/team-capacity.js';
import { BaremetalFixture } from './baremetal/baremetal-fixture.js';
import type { GpuaasFixture, Inventory, ToldTeam } from './gpuaas-fixture.js';

interface Place {
  team_id: string;
  gpuaas_id: string;
  node_id: string;
  pool_id: string;
  subscription_id: string;
  workload_id: string;
  instance_id: string;
  metal_id: string;
}

const specs = { gpu_model: 'H100-80GB', gpu_count: 8, cpu_cores: 128, memory_gb: 1024 };

let fixture: GpuaasFixture;
let metal: BaremetalFixture;
let pool: Inventory & { pool_id: string };
beforeAll(async () => {
  metal = await BaremetalFixture.start();
  fixture = metal.gpuaas;
  pool = await fixture.pool({ profiles: ['1g.10gb'] }, { count: 12 });
});
afterAll(() => metal.stop());

const ofTeam = ({ team_id }: Place) => ({ team_id });
const ofSubscription = ({ subscription_id }: Place) => ({ subscription_id });
const ofInstance = ({ instance_id }: Place) => ({ instance_id });
const ofNode = ({ node_id }: Place) => ({ node_id });
const ofMetal = ({ metal_id }: Place) => ({ node_id: metal_id });
const ofGpuaas = ({ gpuaas_id }: Place) => ({ gpuaas_id });

describeAccess<Place>({
  service: 'gpuaas',
  place: async () => {
    const team: ToldTeam = await fixture.team();
    const { subscription_id } = await fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 3 });
    const host = await metal.available('', { specs });
    const { instance_id } = await metal.request(team, { specs: { gpu_count: 8 } });
    await metal.settle();
    await fixture.settle();
    const { workload_id } = await fixture.start(team, { subscription_id });
    await fixture.settle();
    // What is told of a team by itself has been told.
    while ((await fixture.query('SELECT FROM capacity_change')).length > 0) await fixture.get(TeamCapacity).tell();
    const { gpuaas_id, node_id, pool_id } = pool;
    return {
      team_id: team.team_id,
      gpuaas_id,
      node_id,
      pool_id,
      subscription_id,
      workload_id,
      instance_id,
      metal_id: host.node_id,
    };
  },
  call: (operation: Operation, input, caller, idempotency) => fixture.call(operation, input, caller, idempotency),
  kept: [
    'refresh connections',
    'subscribe to a pool',
    'start a workload',
    'request bare metal',
    'create a region',
    'create a GPU service',
    'register a node',
    'cordon a node',
    'uncordon a node',
    'register a host',
  ],
  query: (sql, values) => fixture.query(sql, values),
  changing: ['list pools', 'list the GPUs of a pool', 'read the utilization of a subscription'],
  deletion: ({ team_id }) =>
    fixture.tell(teamDeletionRequested, { team_id, revision: 2, attempt_id: newId(), force: true }),
  suspension: {
    begin: ({ team_id }) => fixture.tell(teamChanged, { ...aTeam(), team_id, revision: 2, is_suspended: true }),
    permits: [
      'read connections',
      'shrink a subscription',
      'stop a workload',
      'end a subscription',
      'end the subscription of a pool',
      'take a subscription back',
      'read the credentials of bare metal',
      'release bare metal',
    ],
  },
  deleted: {
    begin: ({ team_id }) => fixture.tell(teamChanged, { ...aTeam([]), team_id, revision: 3, status: 'deleted' }),
    keeps: ['find subscriptions by their ids'],
  },
  subjects: () => fixture.subjects,
  elsewhere: {
    'whoever has the token of the reinstall': [baremetalNodes.reinstalled],
    'all teams of the caller: what is of others is not found': [gpuaasBatches.places],
  },
  operations: {
    'list regions with pools': ['readTeam', pools.availableRegions, ofTeam],
    'list pools': ['readTeam', pools.available, ({ team_id, gpuaas_id }) => ({ team_id, gpuaas_id })],
    'list the GPUs of a pool': ['readTeam', poolGpus.list, ({ team_id, pool_id }) => ({ team_id, pool_id })],
    'list subscriptions': ['readTeam', subscriptions.list, ofTeam],
    'find subscriptions by their ids': [
      'readTeam',
      gpuaasBatches.subscriptions,
      ({ team_id, subscription_id }) => ({ team_id, subscription_ids: [subscription_id] }),
    ],
    'list workloads': ['readTeam', workloads.list, ofTeam],
    'list instances that can be connected': ['readTeam', connections.compatibleInstances, ofTeam],
    'read connections': ['useResources', connections.read, ofTeam],
    'refresh connections': ['useResources', connections.refresh, ofTeam],
    'subscribe to a pool': [
      'useResources',
      subscriptions.subscribe,
      ({ team_id, pool_id }) => ({ team_id, pool_id, vgpus: 1 }),
    ],
    'start a workload': [
      'useResources',
      workloads.start,
      ({ subscription_id }) => ({ subscription_id, name: 'job', vgpus: 1 }),
    ],
    'shrink a subscription': [
      'useResources',
      subscriptions.resize,
      ({ subscription_id }) => ({ subscription_id, vgpus: 2 }),
    ],
    'grow a subscription': [
      'useResources',
      subscriptions.resize,
      ({ subscription_id }) => ({ subscription_id, vgpus: 3 }),
    ],
    'stop a workload': ['useResources', workloads.stop, ({ workload_id }) => ({ workload_id })],
    'read the utilization of a subscription': ['readTeam', subscriptions.utilization, ofSubscription],
    'end a subscription': ['useResources', subscriptions.unsubscribe, ofSubscription],
    'end the subscription of a pool': ['useResources', gpuaasBatches.end, ofSubscription],
    'take a subscription back': ['useResources', gpuaasBatches.undo, ofSubscription],
    'list bare metal': ['readTeam', baremetal.list, ofTeam],
    'read bare metal': ['readTeam', baremetal.get, ofInstance],
    'request bare metal': [
      'useResources',
      baremetal.request,
      ({ team_id }) => ({ team_id, name: 'x', specs: { gpu_count: 1 } }),
    ],
    'read the credentials of bare metal': ['useResources', baremetal.credentials, ofInstance],
    'release bare metal': ['useResources', baremetal.end, ofInstance],
    'create a region': ['operate', regions.create, () => ({ region_name: `region-${newId()}` })],
    'list regions': ['operate', regions.list, () => ({})],
    'create a GPU service': ['operate', regions.createGpuaas, () => ({ region_id: '1', name: 'x' })],
    'list GPU services': ['operate', regions.listGpuaas, () => ({})],
    'set a cluster': ['operate', clusters.set, ({ gpuaas_id }) => ({ gpuaas_id, driver: 'simulated' })],
    'read a cluster': ['operate', clusters.get, ofGpuaas],
    'check a cluster': ['operate', clusters.check, ofGpuaas],
    'register a node': [
      'operate',
      nodes.register,
      ({ gpuaas_id }) => ({ gpuaas_id, node_name: 'x', gpus: [{ board: 'A100-80GB', count: 1 }] }),
    ],
    'list nodes': ['operate', nodes.list, () => ({})],
    'read a node': ['operate', nodes.get, ofNode],
    'initialise a node': ['operate', nodes.initialise, ofNode],
    'reset a node': ['operate', nodes.reset, ofNode],
    'cordon a node': ['operate', nodes.cordon, ofNode],
    'uncordon a node': ['operate', nodes.uncordon, ofNode],
    'create a pool': [
      'operate',
      pools.create,
      ({ gpuaas_id }) => ({ gpuaas_id, pool_name: 'x', gpu_ids: ['1'], sharing_mode: 'Spatial', mechanism: 'mig' }),
    ],
    'list all pools': ['operate', pools.list, () => ({})],
    'list all subscriptions': ['operate', subscriptions.listAll, () => ({})],
    'register a host': [
      'operate',
      baremetalNodes.register,
      () => ({ name: 'x', region_id: '1', host: 'x.example', credential: { password: 'x' }, specs }),
    ],
    'list hosts': ['operate', baremetalNodes.list, () => ({})],
    'read a host': ['operate', baremetalNodes.get, ofMetal],
    'change a host': ['operate', baremetalNodes.update, ({ metal_id }) => ({ node_id: metal_id, maintenance: true })],
    'check a host': ['operate', baremetalNodes.check, ofMetal],
    'accept a host': ['operate', baremetalNodes.accept, ofMetal],
    'remove a host': ['operate', baremetalNodes.delete, ofMetal],
    'count what its machines do': ['operate', machines('gpuaas').states, () => ({})],
    'list what its machines do': [
      'operate',
      machines('gpuaas').list,
      () => ({ service: 'gpuaas', machine: 'subscription', kind: 'waiting' }),
    ],
    'find a GPU service': ['serve', gpuServices.find, () => ({ region_id: '1' })],
    'look a cluster up': ['serve', clusters.lookUp, ofGpuaas],
    'tell what a team holds': ['serve', gpuHoldings.ofTeam, ofTeam],
    'read the use of pods': ['serve', podUsages.read, () => ({ seconds: 60, pods: [] })],
    'check a workload of a pod': [
      'serve',
      podWorkloads.check,
      ({ subscription_id }) => ({ subscription_id, vgpus: 1 }),
    ],
    'start a workload of a pod': [
      'serve',
      podWorkloads.start,
      ({ subscription_id }) => ({ subscription_id, pod_id: newId(), start: 1, pod_name: 'x', vgpus: 1 }),
    ],
    'end a workload of a pod': ['serve', podWorkloads.end, () => ({ pod_id: newId(), start: 1 })],
  },
});
