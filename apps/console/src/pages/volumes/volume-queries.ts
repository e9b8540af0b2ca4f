import { queryOptions } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.js';
import { pollMs } from '../../api/query-client.js';

const underWay: ReadonlySet<string> = new Set(['pending', 'resizing', 'deleting']);

export const volumesQuery = (team_id: string, page: number, limit = 20) =>
  queryOptions({
    queryKey: ['volumes', team_id, page, limit],
    queryFn: () => answerOf(api.GET('/api/shared-volumes', { params: { query: { team_id, page, limit } } })),
    refetchInterval: ({ state }) =>
      state.data?.data.some(({ status }) => underWay.has(status)) ? pollMs.busy : pollMs.calm,
  });
