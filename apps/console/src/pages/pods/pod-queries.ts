import { queryOptions } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.js';
import { pollMs } from '../../api/query-client.js';

const underWay: ReadonlySet<string> = new Set(['pending', 'pulling', 'stopping', 'provisioning', 'updating', 'deleting']);

const pace = (statuses: readonly string[]) => (statuses.some((status) => underWay.has(status)) ? pollMs.busy : pollMs.calm);

export const podsQuery = (team_id: string, page: number, include_ended: boolean) =>
  queryOptions({
    queryKey: ['pods', team_id, page, include_ended],
    queryFn: () =>
      answerOf(api.GET('/api/pods', { params: { query: { team_id, page, limit: 20, ...(include_ended && { include_ended }) } } })),
    refetchInterval: ({ state }) => pace(state.data?.data.map(({ status }) => status) ?? []),
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
