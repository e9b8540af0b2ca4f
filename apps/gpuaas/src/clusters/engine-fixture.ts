import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What answers in the place of a container engine, as far as checks ask it. */
export class EngineFixture {
  readonly #folder = mkdtempSync(join(tmpdir(), 'atoll-engine-'));
  readonly #server: Server;
  #hanging: (() => void)[] = [];
  /** `hangs`: takes connections and requests, and says nothing until `answerHanging` or `hangUp`. */
  mode: 'answers' | 'hangs' = 'answers';
  /** What happens to the next request alone. */
  once: 'hangs' | 'hangs up' | 'is late' | undefined;
  /** How late. */
  lateMs = 0;
  id = 'engine-1';
  hasDoorImage = true;

  private constructor() {
    this.#server = createServer((request, response) => {
      const { once = this.mode } = this;
      this.once = undefined;
      if (once === 'hangs up') return void request.destroy();
      const path = (request.url ?? '').replace(/^\/v[\d.]+|\?.*$/g, '');
      const isMissing = path.startsWith('/images/') && !this.hasDoorImage;
      const answer = () => {
        response.writeHead(isMissing ? 404 : 200, {
          'content-type': 'application/json',
          server: 'Docker/27.3.1 (linux)',
          'api-version': '1.47',
        });
        response.end(JSON.stringify(isMissing ? { message: 'no such image' } : this.#info()));
      };
      if (once === 'hangs') this.#hanging.push(answer);
      else setTimeout(answer, once === 'is late' ? this.lateMs : 0);
    });
  }

  static async start(): Promise<EngineFixture> {
    const fixture = new EngineFixture();
    fixture.#server.listen(fixture.socket);
    await once(fixture.#server, 'listening');
    return fixture;
  }

  get socket(): string {
    return join(this.#folder, 'engine.sock');
  }

  /** What was asked while it hung is answered now. */
  answerHanging(): void {
    for (const answer of this.#hanging.splice(0)) answer();
  }

  hangUp(): void {
    this.#hanging = [];
    this.#server.closeAllConnections();
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #info(): object {
    const limits = {
      MemoryLimit: true,
      CpuCfsQuota: true,
      PidsLimit: true,
      SecurityOptions: ['name=seccomp,profile=builtin'],
    };
    return { ID: this.id, Name: 'host-1', DockerRootDir: this.#folder, ServerVersion: '27.3.1', NCPU: 2, ...limits };
  }
}
