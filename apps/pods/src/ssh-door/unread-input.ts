import type { Writable } from 'node:stream';
import { fairShare } from '@atoll/waiting';
import type { ServerChannel } from 'ssh2';

/** What a chunk takes beside its bytes: a client may send one byte at a time. */
const chunkBytes = 512;
/** Between two looks at whether there is room again. */
const lookMs = 100;

/** What ssh2 1.17 has of a channel and does not show: how many bytes the client may still send. */
interface Inside {
  readonly incoming: { readonly window: number };
}

/** What a client has sent on one channel and its pod has not taken. */
export class ChannelInput {
  #chunks = 0;
  #target: Writable | null = null;

  constructor(private readonly channel: ServerChannel) {
    const push = channel.push.bind(channel);
    channel.push = (chunk: Buffer | null): boolean => {
      if (chunk) this.#chunks += 1;
      return push(chunk);
    };
  }

  /** To be called where the channel begins to be passed on to the target. */
  passTo(target: Writable): void {
    this.#target = target;
    // One chunk may be several that were read together.
    this.channel.on('data', () => (this.#chunks = this.channel.readableLength === 0 ? 0 : this.#chunks - 1));
  }

  get bytes(): number {
    return this.channel.readableLength + this.#chunks * chunkBytes + (this.#target?.writableLength ?? 0);
  }

  /** Whether the client has sent more than the window allows (RFC 4254, 5.2), which ssh2 does not refuse. */
  get isOverrun(): boolean {
    return (this.channel as unknown as Inside).incoming.window < 0;
  }
}

interface UnreadBounds {
  /** Bytes of all clients. */
  readonly all: number;
  /** Bytes of one user. Less where most are taken (`fairShare`). */
  readonly ofUser: number;
}

/** A client whose input is counted. */
export interface CountedClient {
  readonly userId: string;
  unreadBytes(): number;
  /** There is room again. */
  readOn(): void;
}

/**
 * Bounds what the door keeps of the input that pods do not take. Each channel has a window of 2 MiB, and a user has
 * many channels: where those of a user hold too much, nothing more is read of those clients of which something waits.
 */
export class UnreadInput {
  /** As they were last counted. */
  readonly #bytes = new Map<CountedClient, number>();
  readonly #ofUsers = new Map<string, number>();
  #ofAll = 0;
  readonly #held = new Set<CountedClient>();
  #looks: NodeJS.Timeout | undefined;

  constructor(private readonly bounds: UnreadBounds) {}

  /** Whether more of the client is to be read now. If not, its `readOn` is called as soon as it is. */
  takes(client: CountedClient): boolean {
    this.#count(client, client.unreadBytes());
    if (!this.#isFull(client)) return true;
    this.#held.add(client);
    // Others may have less than when they were counted last.
    this.#looks ??= setInterval(() => this.#look(), lookMs).unref();
    return false;
  }

  leave(client: CountedClient): void {
    this.#count(client, 0);
    this.#held.delete(client);
  }

  #look(): void {
    for (const client of this.#bytes.keys()) this.#count(client, client.unreadBytes());
    for (const client of this.#held) {
      if (this.#isFull(client)) continue;
      this.#held.delete(client);
      client.readOn();
    }
    if (this.#held.size > 0) return;
    clearInterval(this.#looks);
    this.#looks = undefined;
  }

  #isFull(client: CountedClient): boolean {
    if (!this.#bytes.has(client)) return false;
    const { all, ofUser } = this.bounds;
    return (this.#ofUsers.get(client.userId) ?? 0) >= fairShare({ all, free: all - this.#ofAll, most: ofUser });
  }

  #count(client: CountedClient, bytes: number): void {
    const more = bytes - (this.#bytes.get(client) ?? 0);
    if (bytes > 0) this.#bytes.set(client, bytes);
    else this.#bytes.delete(client);
    const ofUser = (this.#ofUsers.get(client.userId) ?? 0) + more;
    if (ofUser > 0) this.#ofUsers.set(client.userId, ofUser);
    else this.#ofUsers.delete(client.userId);
    this.#ofAll += more;
  }
}
