import type { PodSlice } from '../../objects.js';

/** The run of a pod, as its shell shows it. */
export interface ShownPod {
  readonly podName: string;
  readonly image: string;
  readonly slices: readonly PodSlice[];
  readonly readyMs: number;
}

/** What a program of a simulated pod reads and writes. */
export interface SimulatedProcess {
  readonly pod: ShownPod;
  /** Without the program's own name. */
  readonly words: readonly string[];
  readonly env: Map<string, string>;
  /** Until the end of its input. Pieces of any size. */
  readonly input: AsyncIterable<Buffer>;
  /** Aborted by an interrupt and by the end of the session. */
  readonly signal: AbortSignal;
  /** Resolves when its reader has room for more. */
  readonly print: (data: string | Buffer) => Promise<void>;
  readonly complain: (text: string) => Promise<void>;
}

/** Resolves with the exit code, 0 to 255. */
export type Program = (process: SimulatedProcess) => Promise<number>;
