import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import { closeFrame, FrameEnds } from './frame-ends.js';

/** Of silence, until the other end is asked whether it is there. */
const keepAliveMs = 30_000;
/** What a browser has to answer to the end before its connection is cut. */
const partingMs = 1_000;
/** Service Restart (RFC 6455, 7.4.1, and its registry). */
const restart = closeFrame(1012, 'The platform restarts here. Open the terminal again.');

/**
 * Passes bytes both ways, no faster than they are read, until either end is gone, also without a word; then neither is
 * left.
 */
export class Bridge {
  readonly #frames = new FrameEnds();
  readonly #see = (chunk: Buffer): void => this.#frames.see(chunk);

  constructor(
    private readonly browser: Socket,
    private readonly replica: Socket,
    onEnd: () => void,
  ) {
    browser.once('close', onEnd);
    replica.on('data', this.#see);
    this.#pass(browser, replica);
    this.#pass(replica, browser);
  }

  #pass(from: Socket, to: Socket): void {
    from.setKeepAlive(true, keepAliveMs);
    pipeline(from, to, () => {
      from.destroy();
      to.destroy();
    });
  }

  /** Tells the browser that this gateway stops, after the frame that it is reading. */
  async close(): Promise<void> {
    const { browser, replica } = this;
    // Not `once` of node:events, which rejects where the browser is gone already and the end cannot be written to it.
    const closed = new Promise<void>((resolve) =>
      browser.closed ? resolve() : browser.once('close', () => resolve()),
    );
    const cut = setTimeout(() => this.cut(), partingMs);
    replica.unpipe(browser).off('data', this.#see);
    if (this.#frames.isBetween) browser.end(restart);
    else replica.on('data', (chunk: Buffer) => this.#finish(chunk)).resume();
    await closed;
    clearTimeout(cut);
    this.cut();
  }

  /** Passes the rest of the frame that has begun, and nothing after it. */
  #finish(chunk: Buffer): void {
    if (this.#frames.isBetween) return;
    this.browser.write(chunk.subarray(0, this.#frames.seeOut(chunk)));
    if (this.#frames.isBetween) this.browser.end(restart);
  }

  cut(): void {
    this.browser.destroy();
    this.replica.destroy();
  }
}
