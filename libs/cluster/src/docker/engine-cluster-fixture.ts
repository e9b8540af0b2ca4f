import { podmanImage, type ContainerEngine } from '@atoll/testing';
import type { ClusterUnderTest, Programs } from '../contract/cluster-under-test-fixture.js';
import type { ObjectRef } from '../objects.js';
import { DockerDriver, type DockerDriverOptions } from './docker-driver.js';
import { Names } from './names.js';
import type { Registry } from './registry-fixture.js';

const program = (...command: string[]) => ({ image: podmanImage, command });
const script = (text: string, ...words: string[]) => program('bash', '-c', text, 'bash', ...words);

const programs: Omit<Programs, 'missingImage'> = {
  idle: script('trap "exit 0" TERM; sleep infinity & wait'),
  stubborn: script('trap "" TERM; echo deaf; while true; do sleep 1; done'),
  exits: (code) => script('exit "$1"', String(code)),
  prints: (count, pauseSeconds) =>
    script(
      'for ((i = 0; i < $1; i++)); do if ((i % 2)); then echo "line $i" >&2; else echo "line $i"; fi; [[ -z $2 ]] || sleep "$2"; done',
      String(count),
      pauseSeconds === undefined ? '' : String(pauseSeconds),
    ),
  serves: script(
    'say="hostname; cat"; socat UDP-LISTEN:8080,fork,reuseaddr SYSTEM:"$say" & exec socat -t 10 TCP-LISTEN:8080,fork,reuseaddr,backlog=512 SYSTEM:"$say"',
  ),
  dials: (host, port) => script('socat /dev/null "TCP:$1:$2,connect-timeout=2" || exit 1', host, String(port)),
  fills: (path, bytes) =>
    script('head -c "$2" /dev/zero > "$1"; trap "exit 0" TERM; sleep infinity & wait', path, String(bytes)),
};

export interface EngineCluster extends ClusterUnderTest {
  open(installationId: string, options?: Partial<DockerDriverOptions>): DockerDriver;
}

/**
 * A container engine with the docker driver.
 *
 * @param removal By which its own client removes a container that runs, at once.
 */
export function clusterOn(engine: ContainerEngine, registry: Registry, removal: readonly string[]): EngineCluster {
  const nameOf = (installationId: string, ref: ObjectRef) => new Names(installationId).of(ref);
  return {
    programs: { ...programs, missingImage: { image: `${registry.host}/missing:1`, command: [] } },
    publicHost: '127.0.0.1',
    open: (installationId, options = {}) =>
      new DockerDriver({
        installationId,
        address: { socketPath: engine.socketPath },
        publicHost: '127.0.0.1',
        doorImage: podmanImage,
        volumeUsageAgeMs: 0,
        ...options,
      }),
    crash: () => engine.restart(),
    stopByHand: async (installationId, ref) =>
      void (await engine.cli('stop', '--time', '5', nameOf(installationId, ref))),
    removeByHand: async (installationId, ref) => void (await engine.cli(...removal, nameOf(installationId, ref))),
    stop: async () => {
      await engine.stop();
      await registry.stop();
    },
  };
}
