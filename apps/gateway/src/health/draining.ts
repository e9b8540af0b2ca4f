import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { Injectable, type BeforeApplicationShutdown, type OnModuleDestroy } from '@nestjs/common';
import { GatewaySettings } from '../gateway-options.js';

/**
 * The way out: not ready any more, a pause for load balancers to notice, then the server closes as its open requests
 * end.
 */
@Injectable()
export class Draining implements OnModuleDestroy, BeforeApplicationShutdown {
  #begun = false;

  constructor(private readonly settings: GatewaySettings) {}

  get begun(): boolean {
    return this.#begun;
  }

  onModuleDestroy(): void {
    this.#begun = true;
  }

  async beforeApplicationShutdown(): Promise<void> {
    if (this.settings.drainDelayMs > 0) await delay(this.settings.drainDelayMs);
    // Timers of a busy process run before it reads what has arrived: a connection that looks idle, and is closed, would
    // take the request on it along.
    await nextTurn();
  }
}
