import { queryOptions } from '@tanstack/react-query';
import { answerOf, api, ofTeam } from '../../api/client.js';
import { everyRow, pageOf } from '../../api/pages.js';
import { mostOfPage, pollMs, restOfAll } from '../../api/query-client.js';

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

/** All that have not ended. */
export const allPodsQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['pods', team_id, 'all'],
    queryFn: ({ signal }) =>
      everyRow((page) => answerOf(api.GET('/api/pods', { params: { query: { team_id, ...page } } })), signal),
    refetchInterval: ({ state }) => restOfAll(pollMs.calm, state.data),
  });

/**
 * The pods whose logs can be chosen by their names: all that have not ended, and the latest 100 to 200 of all. The logs
 * of others are reached by an address.
 */
export const podNamesQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['pods', team_id, 'names'],
    queryFn: async ({ signal }) => {
      const read = (query: { page: number; limit: number; include_ended?: true }) =>
        answerOf(api.GET('/api/pods', { params: { query: { team_id, ...query } } }));
      const ofAll = (page: number) => pageOf((query) => read({ ...query, include_ended: true }), page, signal);
      const [live, first] = await Promise.all([everyRow(read, signal), ofAll(1)]);
      // The oldest are listed first.
      const last = Math.ceil((first.pagination?.total ?? 0) / mostOfPage);
      const latest = await Promise.all([last - 1, last].filter((page) => page > 1).map(ofAll));
      const pages = last > 2 ? latest : [first, ...latest];
      return [...live.data, ...pages.flatMap(({ data }) => data)];
    },
    staleTime: pollMs.calm,
  });

export const connectionsQuery = (team_id: string, subscription_id: string) =>
  queryOptions({
    queryKey: ['connections', team_id, subscription_id],
    queryFn: () =>
      answerOf(api.GET('/api/gpuaas/connection-info', { params: { query: { team_id, subscription_id } } })),
    refetchInterval: pollMs.calm,
  });

export const podQuery = (team_id: string, pod_name: string) =>
  queryOptions({
    queryKey: ['pods', team_id, 'one', pod_name],
    queryFn: () =>
      ofTeam(team_id, 'pod', answerOf(api.GET('/api/pods/{pod_name}', { params: { path: { pod_name } } }))),
    refetchInterval: ({ state }) => pace(state.data ? [state.data.status] : []),
  });

export const exposedServicesQuery = (pod_name: string) =>
  queryOptions({
    queryKey: ['services', pod_name],
    queryFn: () => answerOf(api.GET('/api/pods/exposed-services', { params: { query: { pod_name } } })),
    refetchInterval: ({ state }) => pace(state.data?.data.map(({ status }) => status) ?? []),
  });
