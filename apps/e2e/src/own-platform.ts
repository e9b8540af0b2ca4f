import { afterAll } from '@jest/globals';
import { rmSync } from 'node:fs';
import { startPlatform, type RunningPlatform, type Topology } from './running-platform.js';

/**
 * The platform of stories that kill what it runs on: one at a time, stopped after the last of a file. Its data folder
 * goes with it where one is named.
 */
export class OwnPlatform {
  #running: RunningPlatform | undefined;
  folder: string | undefined;

  constructor() {
    afterAll(async () => {
      await this.stop();
      if (this.folder) rmSync(this.folder, { recursive: true, force: true });
      this.folder = undefined;
    });
  }

  async start(
    topology: Topology,
    env: Record<string, string> = {},
    options: { ownGroup?: boolean } = {},
  ): Promise<RunningPlatform> {
    this.#running = await startPlatform(topology, env, options);
    return this.#running;
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
    this.#running = undefined;
  }

  get(path: string): Promise<Response> {
    return fetch(`${this.#running?.url}/api${path}`, {
      headers: { authorization: `Bearer ${this.#running?.adminKey}` },
    });
  }

  post(path: string, body: string): Promise<Response> {
    const headers = { authorization: `Bearer ${this.#running?.adminKey}`, 'content-type': 'application/json' };
    return fetch(`${this.#running?.url}/api${path}`, { method: 'POST', headers, body });
  }

  async createTeam(): Promise<string> {
    const response = await this.post('/team', JSON.stringify({ name: 'Survivors' }));
    return ((await response.json()) as { id: string }).id;
  }
}

/** Asks again until there is an answer. */
export async function until<T>(attempt: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await attempt();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
