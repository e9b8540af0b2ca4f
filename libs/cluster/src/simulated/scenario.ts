import type { ClusterErrorCode } from '../cluster-error.js';

/** What a simulated pod does, by its name or by that of its image: `job-crash-abcde`, `registry.example.com/oom:1`. */
export type Scenario = Pulled | Ended | 'plain' | 'hang' | 'idle' | 'tcp-echo' | 'port-taken';
type Pulled = 'pull-fail' | 'pull-hang' | 'needs-login';
type Ended = `exit-${number}` | 'crash' | 'oom';

const named =
  /(?:^|[-./:@])(pull-fail|pull-hang|needs-login|exit-(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])|crash|oom|hang|idle|tcp-echo|port-taken)(?=$|[-./:@])/;

export function scenarioOf(podName: string, image: string): Scenario {
  return ((named.exec(podName) ?? named.exec(image))?.[1] as Scenario | undefined) ?? 'plain';
}

export interface Life {
  /** Milliseconds until the image is there; null: never. */
  readonly pullMs: number | null;
  /** Of the pull, when it has taken `pullMs`. */
  readonly trouble: ClusterErrorCode | null;
  /** Milliseconds that its process runs; null: until it is stopped. */
  readonly runsMs: number | null;
  readonly exitCode: number | null;
  readonly isOutOfMemory: boolean;
}

const shortRunMs = 1_000;

/** The life of a pod whose image takes `pullMs` to pull. */
export function lifeOf(scenario: Scenario, pullMs: number): Life {
  const life: Life = { pullMs, trouble: null, runsMs: null, exitCode: null, isOutOfMemory: false };
  switch (scenario) {
    case 'pull-fail':
      return { ...life, trouble: 'image_not_found' };
    case 'needs-login':
      return { ...life, trouble: 'image_needs_login' };
    case 'pull-hang':
      return { ...life, pullMs: null };
    case 'crash':
      return { ...life, runsMs: shortRunMs, exitCode: 1 };
    case 'oom':
      return { ...life, runsMs: shortRunMs, exitCode: 137, isOutOfMemory: true };
    case 'hang':
    case 'idle':
    case 'tcp-echo':
    case 'port-taken':
    case 'plain':
      return life;
    default:
      return { ...life, runsMs: shortRunMs, exitCode: Number(scenario.slice('exit-'.length)) };
  }
}

/** Milliseconds from the request to stop to the end: `hang` ignores TERM and is killed after the grace. */
export function endingOf(scenario: Scenario, graceMs: number): { afterMs: number; exitCode: number } {
  return scenario === 'hang' ? { afterMs: graceMs, exitCode: 137 } : { afterMs: Math.min(graceMs, 100), exitCode: 143 };
}
