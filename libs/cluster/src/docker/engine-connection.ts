import { Agent as HttpAgent, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';

/**
 * Where an engine listens: a unix socket, or `https://host:2376` with a client certificate. All PEM; `key` is secret.
 */
export type EngineAddress = LocalEngine | RemoteEngine;

interface LocalEngine {
  readonly socketPath: string;
}

interface RemoteEngine {
  readonly url: string;
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

export interface Message {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: Buffer | null;
  readonly signal: AbortSignal;
}

export interface Reply {
  readonly response: IncomingMessage;
  /** Where the engine turned the connection into a stream of bytes. */
  readonly socket: Duplex | null;
}

const keepAliveMs = 15_000;

/** Connections to one engine. Calls reuse them; a stream gets one of its own. */
export class EngineConnection {
  readonly #open: (options: RequestOptions) => ClientRequest;
  readonly #calls: HttpAgent;

  constructor(address: EngineAddress) {
    const options = { keepAlive: true, keepAliveMsecs: keepAliveMs };
    if ('socketPath' in address) {
      this.#calls = new HttpAgent(options);
      this.#open = (more) => httpRequest({ ...more, socketPath: address.socketPath, host: 'engine' });
    } else {
      const { hostname, port } = new URL(address.url);
      const tls = { ca: address.ca, cert: address.certificate, key: address.key, minVersion: 'TLSv1.2' as const };
      this.#calls = new HttpsAgent({ ...options, ...tls });
      this.#open = (more) => httpsRequest({ ...tls, ...more, host: hostname, port: port || 2376 });
    }
  }

  /** One exchange. A reused connection that the engine had closed in the meantime is replaced once. */
  async exchange(message: Message, kind: 'call' | 'stream'): Promise<Reply> {
    try {
      return await this.#attempt(message, kind);
    } catch (error) {
      if (!(error instanceof StaleConnection)) throw error;
      return await this.#attempt(message, kind);
    }
  }

  #attempt({ body, ...rest }: Message, kind: 'call' | 'stream'): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const request = this.#open({ ...rest, agent: kind === 'call' ? this.#calls : false });
      request.once('response', (response) => resolve({ response, socket: null }));
      request.once('upgrade', (response, socket, head) => {
        if (head.length > 0) socket.unshift(head);
        resolve({ response, socket });
      });
      // Stays: a connection may break after its answer began, which the reader of the answer sees.
      request.on('error', (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
        reject(isStale ? new StaleConnection() : error);
      });
      request.once('socket', (socket) => socket.setKeepAlive(true, keepAliveMs));
      request.end(body ?? undefined);
    });
  }

  close(): void {
    this.#calls.destroy();
  }
}

class StaleConnection extends Error {}
