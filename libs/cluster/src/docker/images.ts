import type { Readable } from 'node:stream';
import { FairSemaphore, Rounds, spreadMs, withPatience } from '@atoll/waiting';
import { ClusterError } from '../cluster-error.js';
import type { ObjectRef } from '../objects.js';
import type { PullProgress, Trouble } from '../observations.js';
import type { Engine } from './engine.js';
import type { ImageAnswer } from './engine-answer.js';
import { clusterErrorOf, EngineRefusal, isMissing } from './engine-errors.js';
import { jsonLines } from './json-lines.js';
import type { Names } from './names.js';

/** One message of `POST /images/create`. */
interface PullMessage {
  readonly id?: string;
  readonly status?: string;
  readonly error?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
}

/** Who waits for an image: an object, for a team. */
export interface Wanting {
  readonly ref: ObjectRef;
  /** Whose turn the pull takes; "" for what the platform itself needs. */
  readonly teamId: string;
  /** Whose turn it takes too, in however many teams; null or left out: nobody's. */
  readonly requestedBy?: string | null;
  /** As for `ClusterDriver.startPod`. Without it the object is wanted until `forget`. */
  readonly isWanted?: () => Promise<boolean>;
}

export interface PullWaits {
  /** How long a pull keeps others waiting: then it goes on, and counts only among those of its team and person. */
  readonly turnMs: number;
  /** How long a registry may send nothing. */
  readonly stallMs: number;
  /** Between two reviews of what still waits for a pull. */
  readonly reviewMs: number;
}

interface Pull {
  /** What waits for it, by the name of the container. */
  readonly wanted: Map<string, Wanting>;
  /** By `lineOf` those that wait for a turn: ends the wait. */
  readonly lines: Map<string, AbortController>;
  readonly stop: AbortController;
  readonly layers: Map<string, { current: number; total: number }>;
  failure: ClusterError | null;
  hasBegun: boolean;
  /** By `performance.now()`; null while it runs. */
  endedAtMs: number | null;
}

const pullsAtOnce = 8;
/** A registry may take its time, so a team, and a person, leaves turns to others, and a long pull leaves its turn. */
const pullsOfOne = 2;
/** A failed pull is not repeated before, however often it is requested. */
const pauseMs = 10_000;
/**
 * The longest description of an image, as `wireBytesOf` counts it. Each container of the image repeats it, and each
 * list of containers, of all teams, those of all: many hundreds of the longest fit into the longest answer of an engine
 * that is read.
 */
const longestConfigBytes = 32 * 1024;
/** In a list of containers, of a volume that the image has Docker create: its name, directory and driver. */
const volumeBytes = 400;
/** How long the outcome of a pull is kept for a container that is requested no more. */
const keptMs = 600_000;

/**
 * Pulls of images. An engine pulls for as long as a client listens, so a pull belongs to this process; after a crash
 * the next request begins it again, with the layers that are already there. An image waits in a line of each team and
 * person that want it, and is pulled in the turn of the first: none holds it back by having much to pull.
 *
 * Another process may end what this one pulls for. So pulls that are not over are reviewed: each object that waits for
 * one is forgotten where `isWanted` is false.
 */
export class Images {
  readonly #pulls = new Map<string, Pull>();
  readonly #ofOne = new FairSemaphore({ permitsPerKey: pullsOfOne });
  readonly #turns = new FairSemaphore({ permits: pullsAtOnce });
  readonly #reviews = new Rounds(() => this.#review());

  constructor(
    private readonly engine: Engine,
    private readonly names: Names,
    private readonly waits: PullWaits,
    private readonly onEnd: (ref: ObjectRef) => void,
  ) {
    this.#reviews.start(this.#reviewInMs());
  }

  /**
   * Whether the object's container can be created from the image now. If not, a pull is under way for it, or has failed
   * lately: `sightOf` tells. Throws `image_too_large` for an image that describes itself at too great length.
   */
  async prepare(image: string, wanting: Wanting, signal: AbortSignal): Promise<boolean> {
    const found = await this.#find(image, signal);
    if (found) {
      this.forget(wanting.ref);
      if (isLong(found.Config ?? {})) throw new ClusterError('image_too_large', sentences.image_too_large(image));
      return true;
    }
    const known = this.#pulls.get(image);
    const isFresh = known && (known.endedAtMs === null || performance.now() - known.endedAtMs < pauseMs);
    const pull = isFresh ? known : this.#request(image);
    pull.wanted.set(this.names.of(wanting.ref), wanting);
    if (!pull.hasBegun && !pull.lines.has(lineOf(wanting))) this.#queue(image, pull, wanting);
    return false;
  }

  async has(image: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#find(image, signal)) !== null;
  }

  async #find(image: string, signal: AbortSignal): Promise<ImageAnswer | null> {
    try {
      return await this.engine.json<ImageAnswer>({ method: 'GET', path: `/images/${image}/json`, signal });
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  /** null where no pull was requested for the object. */
  sightOf(ref: ObjectRef): { pull: PullProgress | null; trouble: Trouble | null } | null {
    const pull = [...this.#pulls.values()].find(({ wanted }) => wanted.has(this.names.of(ref)));
    if (!pull) return null;
    const { failure } = pull;
    const trouble = failure && { code: failure.code, message: failure.message };
    return { pull: pull.endedAtMs === null ? progressOf(pull) : null, trouble };
  }

  /** The object is not wanted any more; a pull that no other object wants ends. */
  forget(ref: ObjectRef): void {
    const name = this.names.of(ref);
    for (const [image, pull] of this.#pulls) {
      const { wanted, lines, stop } = pull;
      const gone = wanted.get(name);
      if (!gone) continue;
      wanted.delete(name);
      if (![...wanted.values()].some((other) => lineOf(other) === lineOf(gone))) leave(lines, lineOf(gone));
      if (wanted.size > 0) continue;
      this.#pulls.delete(image);
      stop.abort();
    }
  }

  close(): void {
    void this.#reviews.stop();
    for (const { lines, stop } of this.#pulls.values()) {
      leaveAll(lines);
      stop.abort();
    }
    this.#pulls.clear();
  }

  #reviewInMs(): number {
    return spreadMs(this.waits.reviewMs);
  }

  /** Asks one question at a time. One that fails changes nothing. */
  async #review(): Promise<number> {
    for (const pull of [...this.#pulls.values()]) {
      for (const { ref, isWanted } of [...pull.wanted.values()]) {
        if (pull.endedAtMs !== null) break;
        if (isWanted && !(await isWanted().catch(() => true))) this.forget(ref);
      }
    }
    return this.#reviewInMs();
  }

  #request(image: string): Pull {
    for (const [other, { endedAtMs }] of this.#pulls)
      if (endedAtMs !== null && performance.now() - endedAtMs > keptMs) this.#pulls.delete(other);
    const pull: Pull = {
      wanted: new Map(),
      lines: new Map(),
      stop: new AbortController(),
      layers: new Map(),
      failure: null,
      hasBegun: false,
      endedAtMs: null,
    };
    this.#pulls.set(image, pull);
    return pull;
  }

  #queue(image: string, pull: Pull, wanting: Wanting): void {
    const line = new AbortController();
    pull.lines.set(lineOf(wanting), line);
    const begin = async (): Promise<{ over?: Promise<void> }> => {
      // Two turns may come at once.
      if (pull.hasBegun) return {};
      pull.hasBegun = true;
      leaveAll(pull.lines);
      const ended = this.#pull(image, pull).then(
        () => null,
        (error: unknown) => pullErrorOf(error, image),
      );
      const over = ended.then((failure) => this.#end(pull, failure));
      await withPatience(over, this.waits.turnMs, undefined);
      return { over };
    };
    const own = { key: wanting.teamId, alsoKey: wanting.requestedBy ?? undefined, signal: line.signal };
    // Rejects where the wait is ended.
    this.#ofOne.run(async () => (await this.#turns.run(begin, own)).over, own).catch(() => undefined);
  }

  #end(pull: Pull, failure: ClusterError | null): void {
    pull.failure = failure;
    pull.endedAtMs = performance.now();
    for (const { ref } of pull.wanted.values()) this.onEnd(ref);
  }

  async #pull(image: string, { stop, layers }: Pull): Promise<void> {
    const { stallMs } = this.waits;
    const query = { fromImage: image };
    const body = await this.engine.stream({
      method: 'POST',
      path: '/images/create',
      query,
      signal: stop.signal,
      deadlineMs: stallMs,
    });
    for await (const message of withoutStall(body, stallMs)) {
      if (message.error) throw new EngineRefusal(500, message.error);
      const { current, total } = message.progressDetail ?? {};
      if (message.id && total) layers.set(message.id, { current: current ?? 0, total });
    }
  }
}

/** Those of one team that one person requested wait in one line for an image. */
function lineOf({ teamId, requestedBy }: Wanting): string {
  return `${teamId} ${requestedBy ?? ''}`;
}

function leave(lines: Pull['lines'], line: string): void {
  lines.get(line)?.abort();
  lines.delete(line);
}

function leaveAll(lines: Pull['lines']): void {
  for (const line of lines.keys()) leave(lines, line);
}

async function* withoutStall(body: Readable, stallMs: number): AsyncGenerator<PullMessage> {
  const stall = (): unknown =>
    body.destroy(new ClusterError('unreachable', 'The registry has sent nothing for too long.'));
  let timer = setTimeout(stall, stallMs);
  try {
    for await (const message of jsonLines<PullMessage>(body)) {
      clearTimeout(timer);
      timer = setTimeout(stall, stallMs);
      yield message;
    }
  } finally {
    clearTimeout(timer);
  }
}

function progressOf({ layers }: Pull): PullProgress {
  if (layers.size === 0) return { doneBytes: null, totalBytes: null };
  const all = [...layers.values()];
  return { doneBytes: sum(all.map(({ current }) => current)), totalBytes: sum(all.map(({ total }) => total)) };
}

function isLong(config: NonNullable<ImageAnswer['Config']>): boolean {
  const json = JSON.stringify(config);
  return json.length > longestConfigBytes || wireBytesOf(json, config) > longestConfigBytes;
}

/**
 * The most bytes that a config takes in an answer of an engine. Go may write six for what is not plain ASCII, for `<`,
 * `>` and `&`: https://pkg.go.dev/encoding/json#Marshal
 */
function wireBytesOf(json: string, { Volumes: volumes }: NonNullable<ImageAnswer['Config']>): number {
  const escaped = json.replaceAll(/[^ -~]|[<>&]|\\[bf]/g, '\\u0000');
  return escaped.length + Object.keys(volumes ?? {}).length * volumeBytes;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, next) => total + next, 0);

/** The first that fits: Docker Hub answers "denied" for what does not exist too, and says so. */
const reasons = [
  [/manifest unknown|name unknown|not found|does not exist or/i, 'image_not_found'],
  [/unauthorized|authentication required|denied|no basic auth credentials|401|403/i, 'image_needs_login'],
  [/invalid reference format|invalid reference|could not parse/i, 'invalid'],
] as const;

/** The engine could not connect to the registry. */
const isAway = /dial tcp|no such host|while waiting for connection/i;

const sentences = {
  image_not_found: (image: string) => `The registry has no image ${image}, or needs a log-in for it.`,
  image_needs_login: (image: string) => `The registry needs a log-in for the image ${image}.`,
  image_too_large: (image: string) =>
    `The image ${image} has too many settings (labels, variables, command, volumes): they take more than 32 KiB in an answer of the engine.`,
  invalid: (image: string) => `${image} is not a reference to an image.`,
};

function pullErrorOf(error: unknown, image: string): ClusterError {
  const known = clusterErrorOf(error);
  if (!(error instanceof EngineRefusal) || known.code === 'no_space') return known;
  const reason = reasons.find(([pattern]) => pattern.test(error.text))?.[1];
  if (reason) return new ClusterError(reason, sentences[reason](image), { cause: error });
  const what = isAway.test(error.text) ? 'cannot be reached' : 'sent an unexpected response';
  return new ClusterError('unreachable', `The image ${image} could not be pulled: its registry ${what}.`, {
    cause: error,
  });
}
