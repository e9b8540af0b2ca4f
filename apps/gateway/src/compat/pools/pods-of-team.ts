import { type CallContext } from '@atoll/contracts';
import {
  podBatches,
  podsAtOnce,
  type ExposedService,
  type FindExposed,
  type PodOnSubscription,
} from '@atoll/contracts/pods';
import { imagePolicies, type ImageObject } from '@atoll/contracts/teams';
import type { Rpc } from '@atoll/rpc';
import type { OldDiscoveredService } from './old-subscriptions.js';

/** All pods of subscriptions of a team, the oldest first: a call for each thousand. */
export async function podsOf(
  rpc: Rpc,
  team_id: string,
  subscription_ids: string[],
  context: CallContext,
): Promise<PodOnSubscription[]> {
  const all: PodOnSubscription[] = [];
  for (;;) {
    const last = all.at(-1)?.pod_id;
    const after = { team_id, subscription_ids, ...(last !== undefined && { pod_id: last }) };
    const { data } = await rpc.call(podBatches.ofSubscriptions, after, context);
    all.push(...data);
    if (data.length < podsAtOnce) return all;
  }
}

/** The exposed services of a team, or of one subscription of it, by the names of their pods. */
export async function servicesOfPods(
  rpc: Rpc,
  asked: FindExposed,
  context: CallContext,
): Promise<ReadonlyMap<string, OldDiscoveredService[]>> {
  const { data } = await rpc.call(podBatches.exposed, asked, context);
  const services = Map.groupBy(data, ({ pod_name }) => pod_name);
  return new Map([...services].map(([name, ofPod]) => [name, ofPod.map(discoveredService)]));
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
