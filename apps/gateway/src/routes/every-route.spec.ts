import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { prices } from '@atoll/contracts/billing';
import {
  baremetal,
  baremetalNodes,
  clusters,
  connections,
  nodes,
  poolGpus,
  pools,
  regions,
  subscriptions,
  workloads,
} from '@atoll/contracts/gpuaas';
import { deadLetters, machines } from '@atoll/contracts/operator';
import {
  exposedServices,
  instances,
  podLimits,
  podLogs,
  pods,
  terminals,
  sharedVolumes,
  sshKeys,
  vms,
} from '@atoll/contracts/pods';
import {
  imagePolicies,
  invitations,
  links,
  members,
  passkeys,
  passwords,
  secondFactors,
  sessions,
  teams,
  users,
  workspaces,
} from '@atoll/contracts/teams';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { teamId } from '../testing/team-fixture.js';

const uuid = '01890000-0000-7000-8000-000000000001';
const ofPath: Record<string, string> = {
  team_id: teamId,
  user_id: uuid,
  invitation_id: uuid,
  workspace_id: uuid,
  id: uuid,
  gpuaas_id: '1',
  node_id: '7',
  pool_id: '3',
  subscription_id: '42',
  workload_id: '9',
  pod_name: 'notebook-qwrtz',
  instance_id: uuid,
  ssh_key_id: uuid,
  volume_id: '5',
  dead_letter_id: uuid,
  service: 'pods',
  machine: 'vm',
};
const ofTeam = { team_id: teamId };
const page = { page: 2, limit: 5 };
const member = { email: 'a@example.com', name: 'A', role: 'member' };
const price = { sku: 'pod', unit: 'pod', unit_price: '0.25', valid_from: '2026-10-01T00:00:00Z' };
const node = { gpuaas_id: '1', node_name: 'gpu-01', gpus: [{ board: 'A100-80GB', count: 8 }] };
const pool = { gpuaas_id: '1', pool_name: 'a100', gpu_ids: ['1', '2'], sharing_mode: 'Spatial', mechanism: 'mig' };
const host = {
  name: 'metal-01',
  region_id: '1',
  host: 'metal-01.example',
  credential: { password: 'x' },
  specs: { gpu_model: 'H100-80GB', gpu_count: 8, cpu_cores: 128, memory_gb: 1024 },
};
const limits = {
  default_duration_minutes: 60,
  longest_duration_minutes: null,
  default_idle_stop: null,
  longest_idle_minutes: 120,
};
const inWindow = { metric_window: 'last_1h', include_ended: 'true' };

/** Method and path, status, operation, and what is sent: by the query of a GET, by the body of others. */
const routes: [string, number, { subject: string }, object?][] = [
  ['POST /team', 201, teams.create, { name: 'x' }],
  ['GET /team', 200, teams.list, page],
  ['GET /team/{team_id}', 200, teams.get],
  ['GET /team/{team_id}/resource-overview', 200, teams.resourceOverview],
  ['PUT /team/{team_id}', 200, teams.update, { name: 'x' }],
  ['DELETE /team/{team_id}', 204, teams.delete],
  ['POST /team/{team_id}/suspend', 200, teams.suspend],
  ['POST /team/{team_id}/unsuspend', 200, teams.unsuspend],
  ['GET /team/{team_id}/members', 200, members.list, page],
  ['POST /team/{team_id}/members', 201, members.add, member],
  ['PUT /team/{team_id}/members/{user_id}', 200, members.changeRole, { role: 'viewer' }],
  ['DELETE /team/{team_id}/members/{user_id}', 204, members.remove],
  ['POST /team/{team_id}/members/{user_id}/api-key', 201, members.issueKey, { grace_seconds: 1 }],
  ['DELETE /team/{team_id}/members/{user_id}/api-key', 204, members.revokeKey],
  ['GET /team/{team_id}/invitations', 200, invitations.list],
  ['POST /team/{team_id}/invitations/accept', 204, invitations.accept],
  ['POST /team/{team_id}/invitations/{invitation_id}/resend', 200, invitations.resend],
  ['DELETE /team/{team_id}/invitations/{invitation_id}', 204, invitations.revoke],
  ['POST /user/second-factor/begin', 200, secondFactors.begin],
  ['POST /user/second-factor/confirm', 200, secondFactors.confirm, { code: '123456' }],
  ['DELETE /user/second-factor', 204, secondFactors.remove, { code: '123456' }],
  ['GET /user/passkeys', 200, passkeys.list],
  ['POST /user/passkeys/begin', 200, passkeys.begin, { name: 'x' }],
  ['POST /user/passkeys/finish', 201, passkeys.finish, { challenge_id: uuid, credential: '{}', name: 'x' }],
  ['DELETE /user/passkeys/{id}', 204, passkeys.remove],
  ['GET /workspace', 200, workspaces.list, { ...ofTeam, ...page }],
  ['POST /workspace', 201, workspaces.create, { ...ofTeam, name: 'x' }],
  ['PUT /workspace/{workspace_id}', 200, workspaces.rename, { name: 'x' }],
  ['DELETE /workspace/{workspace_id}', 204, workspaces.delete],
  ['POST /policy/image', 201, imagePolicies.create, { name: 'x' }],
  ['GET /policy/image', 200, imagePolicies.list, page],
  ['GET /policy/image/{id}', 200, imagePolicies.get],
  ['PUT /policy/image/{id}', 200, imagePolicies.update, { name: 'x' }],
  ['DELETE /policy/image/{id}', 204, imagePolicies.delete],
  ['POST /policy/image/{id}/assign-team', 200, imagePolicies.assign, ofTeam],
  ['GET /policy/image/team/{team_id}/objects', 200, imagePolicies.teamImages, page],
  ['GET /user/profile', 200, users.profile],
  ['PUT /user/profile', 200, users.updateProfile, { timezone: 'UTC' }],
  ['POST /user/api-key', 201, users.issueKey],
  ['DELETE /user/api-key', 204, users.revokeKey],
  ['GET /user/sessions', 200, sessions.list],
  ['DELETE /user/sessions', 204, sessions.endAll],
  ['DELETE /user/sessions/{id}', 204, sessions.end],
  ['PUT /user/password', 204, passwords.change, { current: 'x', new: 'twelve letters' }],
  ['POST /user/login-link', 201, links.create, { email: 'a@example.com' }],
  ['GET /price', 200, prices.list, page],
  ['POST /price', 201, prices.create, price],
  ['POST /region', 201, regions.create, { region_name: 'eu-north', city: 'Oslo' }],
  ['GET /region', 200, regions.list, page],
  ['POST /gpuaas', 201, regions.createGpuaas, { region_id: '1', name: 'oslo-a' }],
  ['GET /gpuaas', 200, regions.listGpuaas, page],
  [
    'PUT /gpuaas/{gpuaas_id}/cluster',
    200,
    clusters.set,
    { driver: 'docker', socket: '/var/run/docker.sock', public_host: 'gpu.example.com' },
  ],
  ['GET /gpuaas/{gpuaas_id}/cluster', 200, clusters.get],
  ['POST /gpuaas/{gpuaas_id}/cluster/check', 200, clusters.check],
  ['POST /gpuaas/node', 201, nodes.register, node],
  ['GET /gpuaas/node', 200, nodes.list, { gpuaas_id: '1', ...page }],
  ['GET /gpuaas/node/{node_id}', 200, nodes.get],
  ['POST /gpuaas/node/{node_id}/initialise', 202, nodes.initialise],
  ['POST /gpuaas/node/{node_id}/reset', 202, nodes.reset],
  ['POST /gpuaas/node/{node_id}/cordon', 200, nodes.cordon],
  ['POST /gpuaas/node/{node_id}/uncordon', 200, nodes.uncordon],
  ['POST /gpuaas/pool/create', 201, pools.create, pool],
  ['GET /gpuaas/all-pools', 200, pools.list, { gpuaas_id: '1', ...page }],
  ['GET /gpuaas/available-regions', 200, pools.availableRegions, { ...ofTeam, ...page }],
  ['GET /gpuaas/available-pools', 200, pools.available, { ...ofTeam, gpuaas_id: '1', ...page }],
  ['GET /gpuaas/pool/{pool_id}/gpus', 200, poolGpus.list, { ...ofTeam, ...page }],
  ['POST /gpuaas/pool/subscribe', 202, subscriptions.subscribe, { ...ofTeam, pool_id: '1', vgpus: 2 }],
  ['PUT /gpuaas/pool-subscription/{subscription_id}', 202, subscriptions.resize, { vgpus: 3 }],
  ['POST /gpuaas/pool/unsubscribe', 200, subscriptions.unsubscribe, { subscription_id: '42', force: true }],
  ['GET /gpuaas/pool-subscriptions/all', 200, subscriptions.listAll, { ...page, ...inWindow }],
  [
    'GET /gpuaas/pool-subscription',
    200,
    subscriptions.list,
    { ...ofTeam, gpuaas_id: '1', subscription_id: '42', ...page, ...inWindow },
  ],
  [
    'GET /gpuaas/pool-subscription/{subscription_id}/utilization',
    200,
    subscriptions.utilization,
    { metric_window: 'last_7d' },
  ],
  ['POST /gpuaas/workload', 202, workloads.start, { subscription_id: '42', name: 'fine-tune' }],
  ['GET /gpuaas/workload', 200, workloads.list, { ...ofTeam, subscription_id: '42', ...page, include_ended: 'true' }],
  ['DELETE /gpuaas/workload/{workload_id}', 202, workloads.stop],
  [
    'GET /logs/pods',
    200,
    podLogs.read,
    { ...ofTeam, pod_name: 'notebook-qwrtz', search: 'loss', limit: 5, order: 'asc' },
  ],
  ['POST /pods', 202, pods.create, { ...ofTeam, subscription_id: '42', name: 'notebook', image: 'nginx' }],
  ['GET /pods', 200, pods.list, { ...ofTeam, subscription_id: '42', ...page, include_ended: 'true' }],
  ['POST /pods/action', 202, pods.act, { pod_name: 'notebook-qwrtz', action: 'stop' }],
  ['GET /pods/{pod_name}', 200, pods.get],
  ['POST /pods/{pod_name}/terminal', 201, terminals.open, { columns: 120, rows: 40 }],
  ['PUT /pods/{pod_name}', 200, pods.update, { name: 'trainer' }],
  ['DELETE /pods/{pod_name}', 202, pods.delete],
  [
    'POST /pods/expose-service',
    202,
    exposedServices.expose,
    { pod_name: 'a-bcdfg', service_name: 'web', port: 80, protocol: 'HTTP' },
  ],
  ['GET /pods/expose-service/status', 200, exposedServices.find, { service_id: '3', pod_name: 'a-bcdfg' }],
  ['GET /pods/exposed-services', 200, exposedServices.list, { pod_name: 'a-bcdfg' }],
  ['PUT /pods/update-exposed-service', 200, exposedServices.update, { service_id: '3', external_port: 30100 }],
  ['DELETE /pods/delete-exposed-service/{id}', 200, exposedServices.delete],
  ['POST /user/ssh-key', 201, sshKeys.add, { name: 'laptop', public_key: 'ssh-ed25519 AAAA' }],
  ['GET /user/ssh-key', 200, sshKeys.list, page],
  ['GET /user/ssh-key/{ssh_key_id}', 200, sshKeys.get],
  ['PUT /user/ssh-key/{ssh_key_id}', 200, sshKeys.rename, { name: 'desktop' }],
  ['DELETE /user/ssh-key/{ssh_key_id}', 204, sshKeys.remove],
  ['GET /pod-limits', 200, podLimits.get],
  ['PUT /pod-limits', 200, podLimits.set, limits],
  ['GET /team/{team_id}/pod-limits', 200, podLimits.ofTeam],
  ['PUT /team/{team_id}/pod-limits', 200, podLimits.setOfTeam, limits],
  ['POST /shared-volumes', 202, sharedVolumes.create, { ...ofTeam, region_id: '1', name: 'datasets', size_in_gb: 100 }],
  ['GET /shared-volumes', 200, sharedVolumes.list, { ...ofTeam, region_id: '1', ...page, include_ended: 'true' }],
  ['GET /shared-volumes/{volume_id}', 200, sharedVolumes.get],
  ['PUT /shared-volumes/{volume_id}', 200, sharedVolumes.resize, { size_in_gb: 200 }],
  ['DELETE /shared-volumes/{volume_id}', 202, sharedVolumes.delete],
  ['POST /vm', 202, vms.create, { ...ofTeam, region_id: '1', name: 'head-node', flavour: 'small', image: 'debian:13' }],
  ['GET /vm', 200, vms.list, { ...ofTeam, region_id: '1', ...page, include_ended: 'true' }],
  ['POST /vm/flavour', 201, vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 }],
  ['GET /vm/flavour', 200, vms.listFlavours, page],
  ['GET /vm/{instance_id}', 200, vms.get],
  ['PUT /vm/{instance_id}', 200, vms.update, { auto_restart: true }],
  ['POST /vm/{instance_id}/start', 202, vms.start],
  ['POST /vm/{instance_id}/stop', 202, vms.stop],
  ['POST /vm/{instance_id}/restart', 202, vms.restart],
  ['DELETE /vm/{instance_id}', 202, vms.delete],
  ['GET /instance', 200, instances.list, { ...ofTeam, ...page, include_ended: 'true' }],
  ['GET /gpuaas/connection-info', 200, connections.read, { ...ofTeam, gpuaas_id: '1', search: '50%_a', ...page }],
  ['POST /gpuaas/refresh-connections?team_id={team_id}', 202, connections.refresh],
  ['GET /gpuaas/compatible-instances/{team_id}', 200, connections.compatibleInstances],
  ['POST /baremetal/node', 202, baremetalNodes.register, host],
  ['GET /baremetal/node', 200, baremetalNodes.list, { region_id: '1', ...page }],
  ['GET /baremetal/node/{node_id}', 200, baremetalNodes.get],
  ['PUT /baremetal/node/{node_id}', 200, baremetalNodes.update, { maintenance: true }],
  ['POST /baremetal/node/{node_id}/check', 202, baremetalNodes.check],
  ['POST /baremetal/node/{node_id}/accept', 200, baremetalNodes.accept],
  ['DELETE /baremetal/node/{node_id}', 204, baremetalNodes.delete],
  ['POST /baremetal/reinstall-callback', 204, baremetalNodes.reinstalled, { token: '1.x', status: 'done' }],
  ['POST /baremetal/request', 202, baremetal.request, { ...ofTeam, name: 'x', specs: { gpu_count: 8 } }],
  ['GET /baremetal', 200, baremetal.list, { ...ofTeam, ...page, include_ended: 'true' }],
  ['GET /baremetal/{instance_id}', 200, baremetal.get],
  ['GET /baremetal/{instance_id}/credentials', 200, baremetal.credentials],
  ['DELETE /baremetal/{instance_id}', 202, baremetal.end],
  [
    'GET /operator/machines/{service}/{machine}',
    200,
    machines('pods').list,
    { kind: 'failed', state: 'failed', ...page },
  ],
  ['POST /operator/dead-letters/{service}/{dead_letter_id}/replay', 202, deadLetters('pods').replay],
  ['DELETE /operator/dead-letters/{service}/{dead_letter_id}', 204, deadLetters('pods').drop],
];

let gateway: GatewayUnderTest;
let key: string;
beforeAll(async () => {
  gateway = await startGateway();
  key = gateway.services.key({ platform_admin: true });
});
afterAll(() => gateway.close());

describe('every route', () => {
  it.each(routes)(
    '%s answers %i by its operation, with path, query and body in one input',
    async (route, status, operation, ...[sent = {}]) => {
      gateway.services.answer(operation as typeof teams.delete, () => ({}));
      const [method = '', template = ''] = route.split(' ');
      const valueOf = (name: string) => (template.includes('exposed-service/') ? '3' : ofPath[name]);
      const named = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, valueOf(name)]);
      const path = template.replace(/\{(\w+)\}/g, (_braces, name: string) => valueOf(name) ?? '');
      const query = method === 'GET' ? `?${new URLSearchParams(Object.entries(sent)).toString()}` : '';
      const body = method === 'GET' || Object.keys(sent).length === 0 ? undefined : sent;
      const answer = await gateway.call<unknown>(method, `/api${path}${query}`, { key, body });
      expect([answer.status, answer.body]).toEqual([status, status === 204 ? '' : {}]);
      expect(gateway.services.callsOf(operation).map(({ input }) => input)).toEqual([
        { ...Object.fromEntries(named), ...sent },
      ]);
    },
  );

  it('is in this list, but for what reports and takes usage, what logs in, and what is composed of several answers', async () => {
    const { paths } = (await gateway.call<OpenAPIObject>('GET', '/api/openapi.json')).body;
    const documented = Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item as Record<string, { deprecated?: boolean }>)
        .filter(([, { deprecated }]) => !deprecated)
        .map(([method]) => `${method.toUpperCase()} ${path.replace('/api', '')}`),
    );
    const listed = routes.map(([route]) => route.replace(/\?.*/, ''));
    expect(listed.toSorted()).toEqual(
      documented
        .filter(
          (route) =>
            !/ \/(?:(?:team|workspace)-billing|usage-events|operator\/[\w-]+$|user\/(?:sso|login|login\/.*|refresh|logout|link|link\/check|password-reset)$)/.test(
              route,
            ),
        )
        .toSorted(),
    );
  });
});
