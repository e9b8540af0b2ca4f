import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type Operation } from '@atoll/contracts';
import { machines } from '@atoll/contracts/operator';
import {
  exposedServices,
  instances,
  podBatches,
  podConnections,
  podHoldings,
  podLimits,
  podLogs,
  pods,
  sharedVolumes,
  sshKeys,
  terminals,
  vms,
} from '@atoll/contracts/pods';
import { teamChanged, teamDeletionRequested } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { aTeam, describeAccess, memberOf } from '@atoll/testing';
import { errorOf, PodsFixture } from './pods-fixture.js';

interface Place {
  team_id: string;
  subscription_id: string;
  pod_name: string;
  service_id: string;
  volume_id: string;
  instance_id: string;
}

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
});
afterAll(() => fixture.stop());

const ofTeam = ({ team_id }: Place) => ({ team_id });
const ofPod = ({ pod_name }: Place) => ({ pod_name });
const ofService = ({ service_id }: Place) => ({ service_id });
const ofVolume = ({ volume_id }: Place) => ({ volume_id });
const ofVm = ({ instance_id }: Place) => ({ instance_id });
const limits = {
  default_duration_minutes: null,
  longest_duration_minutes: null,
  default_idle_stop: null,
  longest_idle_minutes: null,
};

describeAccess<Place>({
  service: 'pods',
  place: async () => {
    const team = await fixture.team('member', 8);
    const { pod_name } = await fixture.running(team);
    const exposed = { pod_name, service_name: 'web', port: 80, protocol: 'HTTP' as const };
    const { service_id } = await fixture.call(exposedServices.expose, exposed, team.member);
    await fixture.untilExposed({ service_id }, ({ status }) => status === 'active');
    const { volume_id } = await fixture.volume(team);
    const { instance_id } = await fixture.runningVm(team);
    return {
      team_id: team.team_id,
      subscription_id: team.subscription_id,
      pod_name,
      service_id,
      volume_id,
      instance_id,
    };
  },
  kept: [
    'create a pod',
    'expose a port',
    'restart a pod',
    'stop a pod',
    'create a volume',
    'create a VM',
    'restart a VM',
    'stop a VM',
    'create a flavour',
  ],
  call: (operation: Operation, input, caller, idempotency) => {
    const user_id = newId();
    // Whoever opens a terminal is asked about at the service of teams.
    for (const { teamId: team_id, role } of caller.teams ?? [])
      fixture.owner.members.push({ user_id, team_id, role, is_suspended: false });
    return fixture.call(operation, input, { ...caller, userId: user_id }, idempotency);
  },
  query: (sql, values) => fixture.query(sql, values),
  deletion: ({ team_id }) =>
    fixture.tell(teamDeletionRequested, { team_id, revision: 2, attempt_id: newId(), force: true }),
  suspension: {
    begin: ({ team_id }) => fixture.tell(teamChanged, { ...aTeam(), team_id, revision: 2, is_suspended: true }),
    permits: [
      'list how all pods are reached',
      'read logs',
      'read logs of a team',
      'read logs of a pod of a team',
      'close an exposed service',
      'stop a pod',
      'delete a pod',
      'delete a volume',
      'stop a VM',
      'delete a VM',
      'read the limits of pods',
    ],
  },
  deleted: {
    begin: ({ team_id }) => fixture.tell(teamChanged, { ...aTeam([]), team_id, revision: 3, status: 'deleted' }),
    keeps: [],
  },
  subjects: () => fixture.subjects,
  elsewhere: {
    'a user, of whom there is more below': [sshKeys.list, sshKeys.get, sshKeys.add, sshKeys.rename, sshKeys.remove],
    'all teams of the caller: what is of others is not found': [podBatches.instances],
    'whoever has the ticket of the terminal': [terminals.locate],
  },
  operations: {
    'list pods': ['readTeam', pods.list, ofTeam],
    'read a pod': ['readTeam', pods.get, ofPod],
    'list exposed services': ['readTeam', exposedServices.list, ofPod],
    'read an exposed service': ['readTeam', exposedServices.find, ofService],
    'list volumes': ['readTeam', sharedVolumes.list, ofTeam],
    'read a volume': ['readTeam', sharedVolumes.get, ofVolume],
    'list VMs': ['readTeam', vms.list, ofTeam],
    'read a VM': ['readTeam', vms.get, ofVm],
    'list instances': ['readTeam', instances.list, ofTeam],
    'list exposed services of all pods': ['readTeam', podBatches.exposed, ofTeam],
    'list how all pods are reached': ['useResources', podBatches.connections, ofTeam],
    'list pods of subscriptions': [
      'readTeam',
      podBatches.ofSubscriptions,
      ({ team_id, subscription_id }) => ({ team_id, subscription_ids: [subscription_id] }),
    ],
    'list volumes with their mount points': ['readTeam', podBatches.volumes, ofTeam],
    'read logs': ['useResources', podLogs.read, ofPod],
    'read logs of a team': ['useResources', podLogs.read, ofTeam],
    'read logs of a pod of a team': ['useResources', podLogs.read, ({ team_id, pod_name }) => ({ team_id, pod_name })],
    'open a terminal': ['useResources', terminals.open, ({ pod_name }) => ({ pod_name, columns: 80, rows: 24 })],
    'create a pod': [
      'useResources',
      pods.create,
      ({ team_id, subscription_id }) => ({ team_id, subscription_id, name: 'x', image: 'nginx' }),
    ],
    'rename a pod': ['useResources', pods.update, ({ pod_name }) => ({ pod_name, name: 'y' })],
    'mount volumes': ['useResources', podBatches.mount, ofPod],
    'expose a port': [
      'useResources',
      exposedServices.expose,
      ({ pod_name }) => ({ pod_name, service_name: 'x', port: 81, protocol: 'TCP' }),
    ],
    'change an exposed service': [
      'useResources',
      exposedServices.update,
      ({ service_id }) => ({ service_id, port: 82 }),
    ],
    'close an exposed service': ['useResources', exposedServices.delete, ({ service_id }) => ({ id: service_id })],
    'restart a pod': ['useResources', pods.act, ({ pod_name }) => ({ pod_name, action: 'restart' })],
    'stop a pod': ['useResources', pods.act, ({ pod_name }) => ({ pod_name, action: 'stop' })],
    'delete a pod': ['useResources', pods.delete, ofPod],
    'create a volume': [
      'useResources',
      sharedVolumes.create,
      ({ team_id }) => ({ team_id, region_id: '1', name: 'another', size_in_gb: 1 }),
    ],
    'grow a volume': ['useResources', sharedVolumes.resize, ({ volume_id }) => ({ volume_id, size_in_gb: 20 })],
    'delete a volume': ['useResources', sharedVolumes.delete, ofVolume],
    'create a VM': [
      'useResources',
      vms.create,
      ({ team_id }) => ({ team_id, region_id: '1', name: 'another', flavour: 'small', image: 'debian:13' }),
    ],
    'change a VM': ['useResources', vms.update, ({ instance_id }) => ({ instance_id, auto_restart: true })],
    'restart a VM': ['useResources', vms.restart, ofVm],
    'stop a VM': ['useResources', vms.stop, ofVm],
    'start a VM': ['useResources', vms.start, ofVm],
    'delete a VM': ['useResources', vms.delete, ofVm],
    'read the limits of pods': ['manageTeam', podLimits.ofTeam, ofTeam],
    'set the limits of pods': ['manageTeam', podLimits.setOfTeam, ({ team_id }) => ({ team_id, ...limits })],
    'read the limits of all pods': ['operate', podLimits.get, () => ({})],
    'set the limits of all pods': ['operate', podLimits.set, () => limits],
    'list flavours': ['call', vms.listFlavours, () => ({})],
    'count what its machines do': ['operate', machines('pods').states, () => ({})],
    'list what its machines do': [
      'operate',
      machines('pods').list,
      () => ({ service: 'pods', machine: 'pod', kind: 'waiting' }),
    ],
    'read how pods are reached': ['serve', podConnections.read, ofTeam],
    'tell what a team holds': ['serve', podHoldings.ofTeam, ofTeam],
    'tell what a cluster holds': ['serve', podHoldings.ofGpuaas, () => ({ gpuaas_id: '1' })],
    'create a flavour': ['operate', vms.createFlavour, () => ({ name: 'x', vcpus: 1, memory_gb: 1 })],
  },
});

it('SSH keys are a user’s: a session reaches them, a key of one membership does not', async () => {
  const key = memberOf(newId());
  const session = { ...key, scope: 'user', credential: { kind: 'session', id: newId() } } as const;
  expect((await errorOf(fixture.call(sshKeys.list, {}, key))).code).toBe('forbidden');
  expect((await fixture.call(sshKeys.list, {}, session)).data).toEqual([]);
});
