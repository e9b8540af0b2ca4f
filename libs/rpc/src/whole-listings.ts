import { personOf, type CallContext } from '@atoll/contracts';
import { AppError, invalidField, tooManyRequests } from '@atoll/errors';
import { FairSemaphore, Pace, Turns } from '@atoll/waiting';
import { remainingMs } from './call-context.js';
import { Json } from './json.js';
import { maxReplyBytes } from './wire.js';

/** Entries of one slice: as many as the largest page has. */
const entriesPerSlice = 100;
/** Long listings that are made at once: of one owner, and for one user of however many teams. */
const atOnce = 2;
/** Of more entries than that, so many are made at once for all owners: each takes tens of megabytes. */
const largeEntries = 10_000;
const largeAtOnce = 4;
const maxWaiting = 1_000;

/** A listing without a limit, of up to some hundred thousand entries. */
export interface WholeListing {
  /** The ids of all entries, in the order of the listing. */
  readonly ids: () => Promise<readonly string[]>;
  /**
   * The entries of up to 100 of the ids, in their order; or their JSON, with commas between them and no brackets. One
   * that is gone may be missing.
   */
  readonly entries: (ids: readonly string[]) => Promise<readonly object[] | string>;
}

/**
 * Makes whole listings in slices of 100 entries, between which others have the event loop. Of one owner, and for one
 * user, two that are longer than that are made at once, and of all four that are longer than 10,000 entries; the rest
 * wait for half of their deadline in all. The operator is bound as an owner alone.
 */
export class WholeListings {
  readonly #turns = new Turns();
  /** The ids of as many are read at once for one user; a short listing waits for no more than that. */
  readonly #looks = new FairSemaphore({ permitsPerKey: atOnce, maxWaiting }, () => tooManyRequests(1));
  readonly #owners = new FairSemaphore({ permitsPerKey: atOnce, maxWaiting }, () => tooManyRequests(1));
  readonly #large = new FairSemaphore(
    { permits: largeAtOnce, maxWaiting },
    () => new AppError('unavailable', 'Too many large responses are being generated.', { retryAfterSeconds: 5 }),
  );

  constructor(private readonly maxBytes = maxReplyBytes) {}

  /**
   * Resolves with the JSON of `{data}`. Listings of the same `owner` take turns. Throws `too_many_requests` if it
   * waited too long for its turn, `unavailable` if it waited too long for large listings of others,
   * `deadline_exceeded` if its deadline passes between two slices, `invalid_input` that names `limit` if it becomes
   * larger than a response may be, and any error of `listing`.
   */
  async make<List extends { data: object[] }>(
    owner: string,
    context: CallContext,
    listing: WholeListing,
  ): Promise<Json<List>> {
    const person = personOf(context.caller) ?? undefined;
    const sparedMs = remainingMs(context) / 2;
    let readMs = 0;
    // What reading the ids takes is no wait.
    const wish = (key: string, alsoKey?: string) => {
      const leftMs = remainingMs(context);
      return { key, alsoKey, patienceMs: Math.max(0, Math.min(leftMs - sparedMs + readMs, leftMs / 2)) };
    };
    const read = async (): Promise<readonly string[]> => {
      const leftMs = remainingMs(context);
      const found = await listing.ids();
      readMs = leftMs - remainingMs(context);
      return found;
    };
    const ids = await (person === undefined ? read() : this.#looks.run(read, wish(person)));
    const make = () => this.#partsOf(ids, listing, new Pace(this.#turns, () => requireTime(context)));
    if (ids.length <= entriesPerSlice) return new Json<List>(await make());
    const work = ids.length > largeEntries ? () => this.#large.run(make, wish(owner)) : make;
    return new Json<List>(await this.#owners.run(work, wish(owner, person)));
  }

  async #partsOf(ids: readonly string[], { entries }: WholeListing, pace: Pace): Promise<Uint8Array[]> {
    const [head, end] = [Buffer.from('{"data":['), Buffer.from(']}')];
    const parts = [head];
    let bytes = head.length + end.length;
    for (let at = 0; at < ids.length; at += entriesPerSlice) {
      if (at > 0) await pace.turn();
      const found = await entries(ids.slice(at, at + entriesPerSlice));
      const text = typeof found === 'string' ? found : JSON.stringify(found).slice(1, -1);
      if (text === '') continue;
      const part = Buffer.from(parts.length > 1 ? `,${text}` : text);
      bytes += part.length;
      if (bytes > this.maxBytes) throw tooLarge(this.maxBytes);
      parts.push(part);
    }
    parts.push(end);
    return parts;
  }
}

/** Nobody waits for the rest of a listing that is late. */
function requireTime(context: CallContext): void {
  if (remainingMs(context) === 0)
    throw new AppError('deadline_exceeded', 'The listing took too long. Send limit and page to read it in parts.');
}

function tooLarge(maxBytes: number): AppError {
  const size = `${maxBytes / 1024 / 1024} MiB`;
  return invalidField('limit', 'maxBytes', `must be sent: the whole listing would be larger than ${size}`);
}
