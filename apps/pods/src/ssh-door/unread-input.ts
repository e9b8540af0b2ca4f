import { Writable } from 'node:stream';
import { fairShare } from '@atoll/waiting';
import type { Connection, ServerChannel } from 'ssh2';

/** What a chunk takes beside its bytes: a client may send one byte at a time. */
const chunkBytes = 512;
/** Between two looks at whether there is room again. */
const lookMs = 100;
/** What a client may send on a channel of which its pod has taken nothing yet: its window (RFC 4254, 5.2). */
const narrowBytes = 128 * 1024;
/** What it may send beyond what its pod has taken, where the pod takes it; what ssh2 allows from the beginning. */
const wideBytes = 2 * 1024 * 1024;

/** What ssh2 1.17 has of a channel and does not show. */
interface InsideOfChannel {
  /** `window`: bytes that the client may still send. */
  readonly incoming: { window: number };
  readonly outgoing: { readonly id: number; readonly state: string };
  readonly _client: { readonly _protocol: { channelWindowAdjust(id: number, bytes: number): void } };
  _read(): void;
}

/** What ssh2 1.17 has of a connection and does not show. */
interface InsideOfConnection {
  readonly _protocol: {
    channelOpenConfirm(theirId: number, ownId: number, windowBytes: number, packetBytes: number): void;
  };
}

/** Has each channel that the client opens begin with the narrow window, which its `ChannelInput` then widens. */
export function narrowWindowsOf(client: Connection): void {
  const { _protocol: protocol } = client as unknown as InsideOfConnection;
  const confirm = protocol.channelOpenConfirm.bind(protocol);
  protocol.channelOpenConfirm = (theirId, ownId, _windowBytes, packetBytes) =>
    confirm(theirId, ownId, narrowBytes, packetBytes);
}

interface InputOfClient {
  /** Whether the client may have the wide window on one more channel. */
  readonly mayWiden: () => boolean;
  readonly ended: () => void;
}

/** What a client has sent on one channel and its pod has not taken. It decides how much more the client may send. */
export class ChannelInput {
  readonly #inside: InsideOfChannel;
  #chunks = 0;
  #sink: Writable | null = null;
  #isWide = false;
  #hasEnded = false;

  constructor(
    private readonly channel: ServerChannel,
    private readonly client: InputOfClient,
  ) {
    this.#inside = channel as unknown as InsideOfChannel;
    this.#inside.incoming.window = narrowBytes;
    const push = channel.push.bind(channel);
    // ssh2 allows more by itself where there is room in the channel, and when it is read.
    channel.push = (chunk: Buffer | null): boolean => {
      if (chunk) this.#chunks += 1;
      push(chunk);
      return false;
    };
    this.#inside._read = () => undefined;
  }

  /**
   * What the channel is to be piped into. It passes one chunk after the other on to `target`, whose buffer may be so
   * large that it would say of nothing when it is taken.
   */
  sinkTo(target: Writable): Writable {
    const sink = (this.#sink = new Writable({
      highWaterMark: 1,
      // Only the direction to the pod ends with it.
      autoDestroy: false,
      write: (chunk: Buffer, _encoding, done) =>
        void target.write(chunk, (error) => {
          done(error);
          // One chunk may be several that were read together.
          this.#chunks = this.#waitingBytes === 0 ? 0 : this.#chunks - 1;
          this.#allowMore();
        }),
      final: (done) => void target.end(() => done()),
      destroy: (error, done) => {
        target.destroy();
        done(error);
      },
    }));
    target.once('close', () => sink.destroy());
    return sink;
  }

  /** Nothing of it is kept any more. */
  end(): void {
    this.#hasEnded = true;
    this.client.ended();
  }

  get bytes(): number {
    return this.#waitingBytes + this.#chunks * chunkBytes;
  }

  get isWide(): boolean {
    return this.#isWide;
  }

  get #waitingBytes(): number {
    return this.channel.readableLength + (this.#sink?.writableLength ?? 0);
  }

  /** Once half of the window is used up and taken, so that few packets say so. */
  #allowMore(): void {
    const { incoming, outgoing, _client: client } = this.#inside;
    const bytes = incoming.window + this.#waitingBytes;
    if (bytes > (this.#isWide ? wideBytes : narrowBytes) / 2) return;
    if (this.#hasEnded || (outgoing.state !== 'open' && outgoing.state !== 'eof')) return;
    this.#isWide ||= this.client.mayWiden();
    const more = (this.#isWide ? wideBytes : narrowBytes) - bytes;
    incoming.window += more;
    client._protocol.channelWindowAdjust(outgoing.id, more);
  }

  /** Whether the client has sent more than the window allows (RFC 4254, 5.2), which ssh2 does not refuse. */
  get isOverrun(): boolean {
    return this.#inside.incoming.window < 0;
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
  untakenBytes(): number;
  /** Channels with the wide window. */
  wideChannels(): number;
  /** There is room again. */
  readOn(): void;
}

/**
 * Bounds what the door keeps of the input that pods do not take. Windows bound it as long as a user has some hundred
 * channels at most: few have the wide one, and those take half of what the user may have. Where the channels of a user
 * hold too much nevertheless, nothing more is read of those clients of which something waits. That also keeps from the
 * door that a client has read output, for which its pod may wait, and that it is there. So only an excess ends in it.
 */
export class UnreadInput {
  /** As they were last counted. */
  readonly #bytes = new Map<CountedClient, number>();
  readonly #ofUsers = new Map<string, number>();
  #ofAll = 0;
  readonly #held = new Set<CountedClient>();
  /** Those that have asked for a wide window. */
  readonly #wide = new Set<CountedClient>();
  #looks: NodeJS.Timeout | undefined;

  constructor(private readonly bounds: UnreadBounds) {}

  /** Whether more of the client is to be read now. If not, its `readOn` is called as soon as it is. */
  takes(client: CountedClient): boolean {
    this.#count(client, client.untakenBytes());
    if (!this.#isFull(client)) return true;
    this.#held.add(client);
    // Others may have less than when they were counted last.
    this.#looks ??= setInterval(() => this.#look(), lookMs).unref();
    return false;
  }

  /** Whether nothing more is read of the client now. */
  holds(client: CountedClient): boolean {
    return this.#held.has(client);
  }

  /** Whether the client may have the wide window on one more channel. */
  mayWiden(client: CountedClient): boolean {
    this.#wide.add(client);
    let bytes = wideBytes;
    for (const each of this.#wide) if (each.userId === client.userId) bytes += each.wideChannels() * wideBytes;
    return bytes <= this.bounds.ofUser / 2;
  }

  leave(client: CountedClient): void {
    this.#count(client, 0);
    this.#held.delete(client);
    this.#wide.delete(client);
  }

  #look(): void {
    for (const client of this.#bytes.keys()) this.#count(client, client.untakenBytes());
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
