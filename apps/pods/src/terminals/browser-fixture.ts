import { setTimeout as delay } from 'node:timers/promises';
import type { WebSocket } from 'ws';

/** What a browser sees of a terminal. */
export class Browser {
  output = '';
  readonly closed: Promise<string>;

  constructor(readonly socket: WebSocket) {
    socket.on('message', (data: Buffer) => (this.output += data.toString()));
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) =>
      socket.once('close', (code, reason) => resolve(`${code} ${reason.toString()}`)),
    );
  }

  async reads(text: string): Promise<void> {
    while (!this.output.includes(text)) await delay(5);
  }
}
