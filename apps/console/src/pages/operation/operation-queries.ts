import { queryOptions } from '@tanstack/react-query';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { pollMs } from '../../api/query-client.js';

export type Machine = Schemas['MachineState'];
export type DeadLetter = Schemas['FailedEvent'];

const watchMs = 5_000;

export const machinesQuery = queryOptions({
  queryKey: ['machines'],
  queryFn: () => answerOf(api.GET('/api/operator/machines')),
  refetchInterval: watchMs,
});

export interface ProcessFilter {
  kind: Machine['kind'];
  state?: string;
  page: number;
}

export const processesQuery = (path: Pick<Machine, 'service' | 'machine'>, { kind, state, page }: ProcessFilter) =>
  queryOptions({
    queryKey: ['machines', path.service, path.machine, kind, state, page],
    queryFn: () =>
      answerOf(
        api.GET('/api/operator/machines/{service}/{machine}', {
          params: { path, query: { kind, page, limit: 20, ...(state !== undefined && { state }) } },
        }),
      ),
    refetchInterval: watchMs,
  });

export const deadLettersQuery = (cursor: string | undefined, service: DeadLetter['service'] | undefined) =>
  queryOptions({
    queryKey: ['dead-letters', cursor, service],
    queryFn: () =>
      answerOf(
        api.GET('/api/operator/dead-letters', {
          params: { query: { limit: 20, ...(cursor && { cursor }), ...(service && { service }) } },
        }),
      ),
    // One that is being tried once more is settled within seconds.
    refetchInterval: ({ state }) =>
      state.data?.data.some(({ replay_requested_at }) => replay_requested_at !== null) ? pollMs.busy : pollMs.calm,
  });
