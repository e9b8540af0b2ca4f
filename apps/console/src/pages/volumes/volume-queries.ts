import { queryOptions } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.js';
import { everyRow } from '../../api/pages.js';
import { pollMs, restOfAll } from '../../api/query-client.js';

const underWay: ReadonlySet<string> = new Set(['pending', 'resizing', 'deleting']);

export const volumesQuery = (team_id: string, page: number) =>
  queryOptions({
    queryKey: ['volumes', team_id, page],
    queryFn: () => answerOf(api.GET('/api/shared-volumes', { params: { query: { team_id, page, limit: 20 } } })),
    refetchInterval: ({ state }) =>
      state.data?.data.some(({ status }) => underWay.has(status)) ? pollMs.busy : pollMs.calm,
  });

export const allVolumesQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['volumes', team_id, 'all'],
    queryFn: ({ signal }) =>
      everyRow((page) => answerOf(api.GET('/api/shared-volumes', { params: { query: { team_id, ...page } } })), signal),
    refetchInterval: ({ state }) => restOfAll(pollMs.calm, state.data),
  });
