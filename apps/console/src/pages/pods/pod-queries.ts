import { queryOptions } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.js';
import { pollMs } from '../../api/query-client.js';

const underWay: ReadonlySet<string> = new Set([
  'pending',
  'pulling',
  'stopping',
  'provisioning',
  'updating',
  'deleting',
]);

const pace = (statuses: readonly string[]) =>
  statuses.some((status) => underWay.has(status)) ? pollMs.busy : pollMs.calm;

export const podsQuery = (team_id: string, page: number, include_ended: boolean) =>
  queryOptions({
    queryKey: ['pods', team_id, page, include_ended],
    queryFn: () =>
      answerOf(
        api.GET('/api/pods', {
          params: { query: { team_id, page, limit: 20, ...(include_ended && { include_ended }) } },
        }),
      ),
    refetchInterval: ({ state }) => pace(state.data?.data.map(({ status }) => status) ?? []),
  });

/** The pods whose logs can be chosen by their names; others are reached by their own page. */
export const podNamesQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['pods', team_id, 'names'],
    queryFn: () => answerOf(api.GET('/api/pods', { params: { query: { team_id, limit: 100, include_ended: true } } })),
    staleTime: pollMs.calm,
  });

export const connectionsQuery = (team_id: string, subscription_id: string) =>
  queryOptions({
    queryKey: ['connections', team_id, subscription_id],
    queryFn: () =>
      answerOf(api.GET('/api/gpuaas/connection-info', { params: { query: { team_id, subscription_id } } })),
    refetchInterval: pollMs.calm,
  });

export const podQuery = (pod_name: string) =>
  queryOptions({
    queryKey: ['pods', 'one', pod_name],
    queryFn: () => answerOf(api.GET('/api/pods/{pod_name}', { params: { path: { pod_name } } })),
    refetchInterval: ({ state }) => pace(state.data ? [state.data.status] : []),
  });

export const exposedServicesQuery = (pod_name: string) =>
  queryOptions({
    queryKey: ['services', pod_name],
    queryFn: () => answerOf(api.GET('/api/pods/exposed-services', { params: { query: { pod_name } } })),
    refetchInterval: ({ state }) => pace(state.data?.data.map(({ status }) => status) ?? []),
  });
