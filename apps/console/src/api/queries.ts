import { queryOptions } from '@tanstack/react-query';
import { answerOf, api, type Schemas } from './client.js';
import { everyRow, recentRows } from './pages.js';
import { pollMs, restAfterFailure, restOfAll } from './query-client.js';

/**
 * What the console reads, each call once: pages share these, and mutations invalidate them by the first word of their
 * keys.
 */
export const profileQuery = queryOptions({
  queryKey: ['profile'],
  queryFn: () => answerOf(api.GET('/api/user/profile')),
  staleTime: 30_000,
  refetchInterval: (query) => restAfterFailure(query) || pollMs.slow,
});

export const teamQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['team', team_id],
    queryFn: () => answerOf(api.GET('/api/team/{team_id}', { params: { path: { team_id } } })),
    refetchInterval: pollMs.slow,
  });

export const membersQuery = (team_id: string, page: number) =>
  queryOptions({
    queryKey: ['team', team_id, 'members', page],
    queryFn: () =>
      answerOf(api.GET('/api/team/{team_id}/members', { params: { path: { team_id }, query: { page, limit: 20 } } })),
  });

/** While another text is sought, what was found before stays. */
export const teamsQuery = ({ find, page }: { find: string; page: number }) =>
  queryOptions({
    queryKey: ['teams', page, find] as const,
    queryFn: () =>
      answerOf(api.GET('/api/team', { params: { query: { page, limit: 20, ...(find && { search: find }) } } })),
    placeholderData: (shown, before) => (before?.queryKey[2] === find ? undefined : shown),
  });

export const overviewQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['overview', team_id],
    queryFn: () => answerOf(api.GET('/api/team/{team_id}/resource-overview', { params: { path: { team_id } } })),
    refetchInterval: pollMs.calm,
  });

export const teamImagesQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['images', team_id],
    queryFn: () => answerOf(api.GET('/api/policy/image/team/{team_id}/objects', { params: { path: { team_id } } })),
  });

export const policiesQuery = queryOptions({
  queryKey: ['policies'],
  queryFn: ({ signal }) => everyRow((query) => answerOf(api.GET('/api/policy/image', { params: { query } })), signal),
});

export type MetricWindow = 'last_1h' | 'last_6h' | 'last_24h' | 'last_7d' | 'last_30d';

const settling: ReadonlySet<string> = new Set(['subscribing', 'unsubscribing']);

/** Soon again while one of them is under way. */
function pace(subscriptions: readonly Pick<Schemas['MeteredSubscription'], 'status'>[] | undefined): number {
  return subscriptions?.some(({ status }) => settling.has(status)) ? pollMs.busy : pollMs.calm;
}

export const subscriptionsQuery = (team_id: string, metric_window: MetricWindow, include_ended = false) =>
  queryOptions({
    queryKey: ['subscriptions', team_id, metric_window, include_ended],
    queryFn: () =>
      answerOf(
        api.GET('/api/gpuaas/pool-subscription', {
          params: { query: { team_id, metric_window, ...(include_ended && { include_ended: true }) } },
        }),
      ),
    refetchInterval: ({ state }) => restOfAll(pace(state.data?.data), state.data),
  });

/** Of recent ones those too that have ended, and maybe some older ones. */
export const recentSubscriptionsQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['subscriptions', team_id, 'recent'],
    queryFn: ({ signal }) =>
      recentRows(
        (page) =>
          answerOf(
            api.GET('/api/gpuaas/pool-subscription', { params: { query: { team_id, include_ended: true, ...page } } }),
          ),
        signal,
      ),
    refetchInterval: ({ state }) => restOfAll(pace(state.data?.data), state.data),
  });

export const utilizationQuery = (subscription_id: string, metric_window: MetricWindow) =>
  queryOptions({
    queryKey: ['utilization', subscription_id, metric_window],
    queryFn: () =>
      answerOf(
        api.GET('/api/gpuaas/pool-subscription/{subscription_id}/utilization', {
          params: { path: { subscription_id }, query: { metric_window } },
        }),
      ),
    refetchInterval: pollMs.slow,
    staleTime: pollMs.slow,
  });

export const allSubscriptionsQuery = (page: number, metric_window: MetricWindow) =>
  queryOptions({
    queryKey: ['subscriptions', 'all', page, metric_window],
    queryFn: () =>
      answerOf(
        api.GET('/api/gpuaas/pool-subscriptions/all', { params: { query: { page, limit: 20, metric_window } } }),
      ),
    refetchInterval: ({ state }) => pace(state.data?.data),
  });

export const availablePoolsQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['available-pools', team_id],
    queryFn: ({ signal }) =>
      everyRow(
        (page) => answerOf(api.GET('/api/gpuaas/available-pools', { params: { query: { team_id, ...page } } })),
        signal,
      ),
    refetchInterval: pollMs.calm,
  });

export const poolGpusQuery = (team_id: string, pool_id: string) =>
  queryOptions({
    queryKey: ['available-pools', team_id, pool_id],
    queryFn: () =>
      answerOf(
        api.GET('/api/gpuaas/pool/{pool_id}/gpus', { params: { path: { pool_id }, query: { team_id, limit: 24 } } }),
      ),
    refetchInterval: ({ state }) =>
      state.data?.data.some(({ transition }) => transition !== null) ? pollMs.busy : pollMs.calm,
  });

export const availableRegionsQuery = (team_id: string) =>
  queryOptions({
    queryKey: ['available-regions', team_id],
    queryFn: ({ signal }) =>
      everyRow(
        (page) => answerOf(api.GET('/api/gpuaas/available-regions', { params: { query: { team_id, ...page } } })),
        signal,
      ),
    staleTime: pollMs.slow,
  });

export const regionsQuery = queryOptions({
  queryKey: ['regions'],
  queryFn: ({ signal }) => everyRow((query) => answerOf(api.GET('/api/region', { params: { query } })), signal),
});

export const gpuaasQuery = queryOptions({
  queryKey: ['gpuaas'],
  queryFn: ({ signal }) => everyRow((query) => answerOf(api.GET('/api/gpuaas', { params: { query } })), signal),
});

const inMotion = (node: Schemas['GpuNode']) =>
  node.status === 'initialising' || node.gpus.some(({ transition }) => transition !== null);

export const nodesQuery = (page: number) =>
  queryOptions({
    queryKey: ['nodes', page],
    queryFn: () => answerOf(api.GET('/api/gpuaas/node', { params: { query: { page, limit: 20 } } })),
    refetchInterval: ({ state }) => (state.data?.data.some(inMotion) ? pollMs.busy : pollMs.calm),
  });

export const allNodesQuery = queryOptions({
  queryKey: ['nodes', 'all'],
  queryFn: ({ signal }) => everyRow((query) => answerOf(api.GET('/api/gpuaas/node', { params: { query } })), signal),
});

export const nodeQuery = (node_id: string) =>
  queryOptions({
    queryKey: ['nodes', 'one', node_id],
    queryFn: () => answerOf(api.GET('/api/gpuaas/node/{node_id}', { params: { path: { node_id } } })),
    refetchInterval: ({ state }) => (state.data && inMotion(state.data) ? pollMs.busy : 3_000),
  });

export const poolsQuery = queryOptions({
  queryKey: ['pools'],
  queryFn: ({ signal }) =>
    everyRow((query) => answerOf(api.GET('/api/gpuaas/all-pools', { params: { query } })), signal),
});

/** The prices of all times, but for those that another one with the same start has replaced. */
export const pricesQuery = queryOptions({
  queryKey: ['prices'],
  queryFn: async ({ signal }) => {
    const { data } = await everyRow((query) => answerOf(api.GET('/api/price', { params: { query } })), signal);
    return data;
  },
});
