import type { Answer, Request } from './rpc-server.js';

/** What answers the requests of one subject. */
export type Responder = (request: Request, respond: (answer: Answer) => void) => void;
type Listener = (json: string) => void;

/** Connects the services of one process in place of NATS. Like NATS it carries only JSON. */
export class InProcessBus {
  readonly #responders = new Map<string, Responder>();
  readonly #listeners = new Map<string, Set<Listener>>();

  /** Registers the handler of a subject; throws if it already has one. Returns a function that removes it. */
  serve(subject: string, responder: Responder): () => void {
    if (this.#responders.has(subject)) throw new Error(`${subject} already has a handler.`);
    this.#responders.set(subject, responder);
    return () => {
      if (this.#responders.get(subject) === responder) this.#responders.delete(subject);
    };
  }

  /** What answers a subject now. */
  responder(subject: string): Responder | undefined {
    return this.#responders.get(subject);
  }

  /** Hands a broadcast to those who listen now, each in a turn of its own. */
  publish(name: string, json: string): void {
    for (const listener of this.#listeners.get(name) ?? []) queueMicrotask(() => listener(json));
  }

  /** Returns the way to stop. */
  listen(name: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => void listeners.delete(listener);
  }
}
