import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { PassThrough, Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { ClusterError, type ClusterDriver, type Shell } from '@atoll/cluster';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import type { Client, ClientChannel, ServerChannel } from 'ssh2';
import { OpenDoorFixture } from './open-door-fixture.js';
import { SessionOutput } from './session-output.js';

/** What ssh2 has of a client and of its channels, and does not show. */
interface Inside {
  readonly _protocol: {
    session(id: number, window: number, packetBytes: number): void;
    channelWindowAdjust(id: number, bytes: number): void;
  };
}

interface Piece {
  readonly stream: 'stdout' | 'stderr';
  readonly bytes: Uint8Array;
  /** Whether the process writes it at once after the one before. */
  readonly isPrompt: boolean;
}

let fixture: OpenDoorFixture;
let client: Client;
let openShell: () => Promise<Shell>;
beforeEach(async () => {
  fixture = await OpenDoorFixture.start();
  const driver = { openShell: () => openShell() } as unknown as ClusterDriver;
  const run = { driver, ref: { kind: 'pod', id: 'p1', run: 1 } as const };
  ({ client } = await fixture.logIn([fixture.key({ run })]));
});
afterEach(() => fixture.stop());

/** A process that writes these pieces, then ends with code 7. */
function shellOf(pieces: readonly Piece[]): Shell {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const write = async () => {
    for (const { stream, bytes, isPrompt } of pieces) {
      (stream === 'stdout' ? stdout : stderr).write(bytes);
      if (!isPrompt) await turn();
    }
    stdout.end();
    stderr.end();
    return { code: 7 };
  };
  const gesture = () => Promise.resolve();
  const stdin = new Writable({ write: (_chunk, _encoding, done) => done() });
  return { stdin, stdout, stderr, exit: write(), resize: gesture, signal: gesture, close: gesture };
}

/** A command of a client that grants its window itself. */
class NarrowSession {
  readonly stdout: Buffer[] = [];
  readonly stderr: Buffer[] = [];
  /** Bytes that came. */
  taken = 0;
  code: unknown;
  isClosed = false;

  private constructor(
    private readonly channel: ClientChannel,
    private readonly inside: Inside,
    /** Bytes that may come. */
    public granted: number,
  ) {
    const take = (pieces: Buffer[]) => (data: Buffer) => {
      pieces.push(data);
      this.taken += data.length;
    };
    channel.on('data', take(this.stdout)).on('exit', (code: unknown) => (this.code = code));
    channel.stderr.on('data', take(this.stderr));
    channel.once('close', () => (this.isClosed = true));
  }

  static open(window: number): Promise<NarrowSession> {
    const inside = client as unknown as Inside;
    const { session } = inside._protocol;
    inside._protocol.session = function (id, _window, packetBytes) {
      session.call(this, id, window, packetBytes);
    };
    // At once: what the door sends next may be here already.
    const opened = new Promise<NarrowSession>((resolve, reject) => {
      client.exec('x', (error, channel) =>
        error ? reject(error) : resolve(new NarrowSession(channel, inside, window)),
      );
    });
    inside._protocol.session = session;
    return opened;
  }

  grant(bytes: number): void {
    const { outgoing } = this.channel as unknown as { outgoing: { id: number; state: string } };
    if (outgoing.state === 'open') this.inside._protocol.channelWindowAdjust(outgoing.id, bytes);
    this.granted += bytes;
  }
}

it('law: whatever a process writes to both outputs, and however its client grants its window, both arrive whole and in order, then the exit code', async () => {
  const piece: fc.Arbitrary<Piece> = fc.record({
    stream: fc.constantFrom('stdout', 'stderr'),
    // Each place of it, and each piece, has bytes of its own.
    bytes: fc
      .tuple(fc.integer({ min: 1, max: 30_000 }), fc.nat(255))
      .map(([length, first]) => new Uint8Array(length).map((_byte, at) => first + at * 7 + (at >> 8))),
    isPrompt: fc.boolean(),
  });
  /** `isEarly`: before the client has taken all that it granted before. */
  const grant = fc.record({ bytes: fc.integer({ min: 1, max: 60_000 }), isEarly: fc.boolean() });
  const grants = fc.array(grant, { minLength: 1, maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { maxLength: 10 }),
      fc.integer({ max: 60_000, min: 0 }),
      grants,
      async (pieces, w, g) => {
        openShell = () => Promise.resolve(shellOf(pieces));
        const session = await NarrowSession.open(w);
        for (let at = 0; !session.isClosed; at += 1) {
          const { bytes, isEarly } = g[at % g.length]!;
          while (!isEarly && session.taken < session.granted && !session.isClosed) await turn();
          // More in each round, so that a window of single bytes takes no time without end.
          session.grant(bytes * 2 ** Math.floor(at / g.length));
          await turn();
        }
        const written = (name: Piece['stream']) =>
          Buffer.concat(pieces.filter(({ stream }) => stream === name).map(({ bytes }) => bytes));
        expect(Buffer.concat(session.stdout).equals(written('stdout'))).toBe(true);
        expect(Buffer.concat(session.stderr).equals(written('stderr'))).toBe(true);
        expect(session.code).toBe(7);
      },
    ),
    runs(40),
  );
});

it('says why a session ends before it ends it, also to a client that has no room for the sentence yet', async () => {
  openShell = () => Promise.reject(new ClusterError('not_found', 'The pod is not running.'));
  const session = await NarrowSession.open(0);
  // An answer comes after all that the door sent before.
  await new Promise((resolve) => client.forwardIn('127.0.0.1', 0, resolve));
  session.grant(1_000);
  while (!session.isClosed) await turn();
  expect([Buffer.concat(session.stderr).toString(), session.code]).toEqual(['The pod is not running.\n', 255]);
});

it('an error of stderr, to which a process writes after the client has closed the channel, does not end the door', () => {
  const stderr = new PassThrough();
  void new SessionOutput(Object.assign(new PassThrough(), { stderr }) as unknown as ServerChannel);
  // Without a listener it is thrown.
  expect(() => stderr.emit('error', new Error('write after end'))).not.toThrow();
});
