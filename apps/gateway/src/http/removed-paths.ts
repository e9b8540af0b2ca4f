import { decodedPath } from './path.js';

interface RemovedPath {
  /** As the OpenAPI document writes it. */
  path: string;
  operationId: string;
  replacement: string;
}

/** Paths that get 410: always for `GET`, for other methods if no route matches. */
export const removedPaths: readonly RemovedPath[] = [
  {
    path: '/api/gpuaas/{gpuaas_id}/pool-subscription',
    operationId: 'getRemovedPoolSubscription',
    replacement: 'GET /api/gpuaas/pool-subscription with the query parameters team_id and gpuaas_id',
  },
  {
    path: '/api/gpuaas/{gpuaas_id}/connection-info',
    operationId: 'getRemovedConnectionInfo',
    replacement: 'GET /api/gpuaas/connection-info with the query parameters team_id and gpuaas_id',
  },
  {
    path: '/api/logs/pods/{gpuaas_id}',
    operationId: 'getRemovedPodLogs',
    replacement: 'GET /api/logs/pods with the query parameter gpuaas_id',
  },
];

const patterns = removedPaths.map(
  ({ path, replacement }) => [new RegExp(`^${path.replaceAll('{gpuaas_id}', '[^/]+')}$`), replacement] as const,
);

/** The replacement of a path that was removed, however it is percent-encoded; undefined for any other. */
export function replacementOf(path: string): string | undefined {
  const plain = decodedPath(path);
  return patterns.find(([pattern]) => pattern.test(plain))?.[1];
}
