export const logStreams = ['stdout', 'stderr', 'platform'] as const;
export type LogStream = (typeof logStreams)[number];

/**
 * Where a line stands among all lines of its team. No two lines stand at the same place: a source writes one line in a
 * nanosecond.
 */
export interface LogPosition {
  /** Nanoseconds since 1970. */
  readonly atNs: bigint;
  /** The number of what wrote it: `LogSourceEntity`. */
  readonly sourceNo: number;
}

export interface StoredLine extends LogPosition {
  /** Null where the cluster cannot tell. */
  readonly stream: LogStream | null;
  readonly message: string;
  /**
   * The pod that wrote it, where the store says so. One that was not restored with the database has lines of pods that
   * this has forgotten, and whose numbers of sources it gives again.
   */
  readonly podName?: string | undefined;
}

/** What wrote lines: the container of a pod or, apart from it, the platform on behalf of the pod. */
export interface LogSource {
  readonly no: number;
  /** The number of its team and GPU service: `LogScopeEntity`. */
  readonly scopeNo: number;
  readonly teamId: string;
  readonly gpuaasId: string;
  readonly podName: string;
  readonly isPlatform: boolean;
}

/** New lines of one source, in order. */
export interface SourceLines {
  readonly source: LogSource;
  readonly lines: readonly StoredLine[];
}

/** Negative where the first comes before the other. */
export function comparePositions(one: LogPosition, other: LogPosition): number {
  if (one.atNs !== other.atNs) return one.atNs < other.atNs ? -1 : 1;
  return one.sourceNo - other.sourceNo;
}

const nsPerMs = 1_000_000n;

export function nsOfMs(ms: number): bigint {
  return BigInt(ms) * nsPerMs;
}

export function msOfNs(ns: bigint): number {
  // Exact as a number: milliseconds since 1970 are far below 2^53.
  return Number(ns / nsPerMs);
}

const instant = /^(.{19})(?:\.(\d{1,9}))?Z$/;

/**
 * Nanoseconds since 1970 of an ISO 8601 instant in UTC with up to nine decimals. Throws RangeError for any other text.
 */
export function nsOfInstant(text: string): bigint {
  const [, seconds = '', fraction = ''] = instant.exec(text) ?? [];
  const ms = Date.parse(`${seconds}Z`);
  if (Number.isNaN(ms)) throw new RangeError(`Not an instant in UTC: ${text.slice(0, 60)}`);
  return nsOfMs(ms) + BigInt(fraction.padEnd(9, '0'));
}
