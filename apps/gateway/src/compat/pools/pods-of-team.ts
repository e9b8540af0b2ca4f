import { type CallContext } from '@atoll/contracts';
import { podBatches, pods, type ExposedService, type Pod } from '@atoll/contracts/pods';
import { imagePolicies, type ImageObject } from '@atoll/contracts/teams';
import type { Rpc } from '@atoll/rpc';
import { allOf } from '../http/old-pages.js';
import type { OldDiscoveredService } from './old-subscriptions.js';

/** Pods with their exposed services: a call for each, whatever their number. */
export interface PodsOfTeam {
  ofSubscription: ReadonlyMap<string, Pod[]>;
  servicesOf: ReadonlyMap<string, OldDiscoveredService[]>;
}

export async function podsOfTeam(rpc: Rpc, teamId: string, context: CallContext): Promise<PodsOfTeam> {
  const [all, exposed] = await Promise.all([
    allOf((page, limit) => rpc.call(pods.list, { team_id: teamId, page: page + 1, limit }, context)),
    rpc.call(podBatches.exposed, { team_id: teamId }, context),
  ]);
  const services = Map.groupBy(exposed.data, ({ pod_name }) => pod_name);
  return {
    ofSubscription: Map.groupBy(all, ({ subscription_id }) => subscription_id),
    servicesOf: new Map([...services].map(([name, ofPod]) => [name, ofPod.map(discoveredService)])),
  };
}

/** The images that the policy of a team names. */
export async function imagesOfTeam(rpc: Rpc, teamId: string, context: CallContext): Promise<ImageObject[]> {
  return (await rpc.call(imagePolicies.teamImages, { team_id: teamId }, context)).data;
}

/** The old name of how a service is reached. */
export function serviceTypeOf({ protocol, ssl_enabled }: ExposedService): string {
  if (protocol !== 'HTTP') return 'NodePort';
  return ssl_enabled ? 'https' : 'http';
}

function discoveredService(service: ExposedService): OldDiscoveredService {
  const { service_id, service_name, host, port, external_port, protocol, status, url } = service;
  return {
    id: Number(service_id),
    service_name,
    ip: host,
    internal_port: port,
    port: external_port,
    node_port: external_port,
    protocol,
    service_type: serviceTypeOf(service),
    status,
    name: service_name,
    url,
  };
}
