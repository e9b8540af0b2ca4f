import { queryOptions } from '@tanstack/react-query';
import { answerOf, api, ofTeam } from '../../api/client.js';
import { everyRow } from '../../api/pages.js';
import { pollMs, restOfAll } from '../../api/query-client.js';

const underWay: ReadonlySet<string> = new Set(['pending', 'stopping']);

export const vmsQuery = (team_id: string, page: number, include_ended: boolean) =>
  queryOptions({
    queryKey: ['vms', team_id, page, include_ended],
    queryFn: () =>
      answerOf(
        api.GET('/api/vm', {
          params: { query: { team_id, page, limit: 20, ...(include_ended && { include_ended }) } },
        }),
      ),
    refetchInterval: ({ state }) =>
      state.data?.data.some(({ status }) => underWay.has(status)) ? pollMs.busy : pollMs.calm,
  });

/** All that have not ended. */
export const allVmsQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['vms', team_id, 'all'],
    queryFn: ({ signal }) =>
      everyRow((page) => answerOf(api.GET('/api/vm', { params: { query: { team_id, ...page } } })), signal),
    refetchInterval: ({ state }) => restOfAll(pollMs.calm, state.data),
  });

export const vmQuery = (team_id: string, instance_id: string) =>
  queryOptions({
    queryKey: ['vms', team_id, 'one', instance_id],
    queryFn: () =>
      ofTeam(team_id, 'VM', answerOf(api.GET('/api/vm/{instance_id}', { params: { path: { instance_id } } }))),
    refetchInterval: ({ state }) => (underWay.has(state.data?.status ?? '') ? pollMs.busy : pollMs.calm),
  });

export const flavoursQuery = queryOptions({
  queryKey: ['flavours'],
  queryFn: ({ signal }) => everyRow((query) => answerOf(api.GET('/api/vm/flavour', { params: { query } })), signal),
});
