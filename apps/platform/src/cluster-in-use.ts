import { request } from 'node:http';

const defaultPatienceMs = 500;

export interface ClusterEnv {
  readonly ATOLL_CLUSTER?: string | undefined;
  readonly ATOLL_DOCKER_SOCKETS?: string | undefined;
  readonly XDG_RUNTIME_DIR?: string | undefined;
}

/** Where Docker and Podman listen unless they are told otherwise. */
function usualSockets({ XDG_RUNTIME_DIR: own }: ClusterEnv): string[] {
  return ['/var/run/docker.sock', '/run/podman/podman.sock', ...(own ? [`${own}/podman/podman.sock`] : [])];
}

/**
 * A sentence for a person: what runs the pods of new GPU services, and of an engine on this machine that is not used.
 */
export async function clusterInUse(
  env: ClusterEnv,
  sockets = usualSockets(env),
  patienceMs = defaultPatienceMs,
): Promise<string> {
  const named = (env.ATOLL_DOCKER_SOCKETS ?? '')
    .split(',')
    .map((socket) => socket.trim())
    .filter(Boolean);
  if (env.ATOLL_CLUSTER === 'docker') return `containers of the engine at ${named[0]}, for new GPU services`;
  const simulated = 'simulated, for new GPU services';
  if (named.length > 0) return `${simulated}; the API can set a cluster on ${named.join(', ')}`;
  const answers = await Promise.all(sockets.map((socket) => isEngine(socket, patienceMs)));
  const found = sockets.find((_socket, at) => answers[at]);
  return found === undefined
    ? simulated
    : `${simulated}. A container engine answers at ${found} but is not used:\n               ATOLL_CLUSTER=docker ATOLL_DOCKER_SOCKETS=${found} uses it.`;
}

/** Whether the Docker Engine API answers there. A socket that hangs does not. */
function isEngine(socketPath: string, patienceMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request({ socketPath, path: '/_ping', signal: AbortSignal.timeout(patienceMs) }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asked.on('error', () => resolve(false));
    asked.end();
  });
}
