import { queryOptions } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.js';
import { everyRow, recentRows } from '../../api/pages.js';
import { pollMs, restOfAll } from '../../api/query-client.js';

const underWay: ReadonlySet<string> = new Set(['Requested', 'Provisioning', 'Releasing', 'Checking']);

const pace = (statuses: readonly string[]) =>
  statuses.some((status) => underWay.has(status)) ? pollMs.busy : pollMs.calm;

export const baremetalQuery = (team_id: string, include_ended: boolean) =>
  queryOptions({
    queryKey: ['baremetal', team_id, include_ended],
    queryFn: ({ signal }) => {
      const filter = { team_id, ...(include_ended && { include_ended }) };
      return everyRow(
        (page) => answerOf(api.GET('/api/baremetal', { params: { query: { ...filter, ...page } } })),
        signal,
      );
    },
    refetchInterval: ({ state }) => restOfAll(pace(state.data?.data.map(({ status }) => status) ?? []), state.data),
  });

/** Of recent ones those too that have ended, and maybe some older ones. */
export const recentBaremetalQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['baremetal', team_id, 'recent'],
    queryFn: ({ signal }) =>
      recentRows(
        (page) => answerOf(api.GET('/api/baremetal', { params: { query: { team_id, include_ended: true, ...page } } })),
        signal,
      ),
    refetchInterval: ({ state }) => restOfAll(pace(state.data?.data.map(({ status }) => status) ?? []), state.data),
  });

export const baremetalNodesQuery = (page: number) =>
  queryOptions({
    queryKey: ['baremetal-nodes', page],
    queryFn: () => answerOf(api.GET('/api/baremetal/node', { params: { query: { page, limit: 20 } } })),
    refetchInterval: ({ state }) => pace(state.data?.data.map(({ status }) => status) ?? []),
  });
