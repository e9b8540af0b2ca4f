import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewaySettings } from '../gateway-options.js';

/** Log-ins that one browser may have under way: the eldest is dropped for a newer one. */
const mostAtOnce = 5;
/** Characters that a cookie name may have; the states of this platform use only these. */
const stateForm = /^[\w-]{1,128}$/;

/**
 * Holds a log-in at a provider together with the browser that began it. Each has a cookie of its own, named by its
 * state, so that several tabs may log in at once, and an answer that is another's ends none. `Lax`, since it comes back
 * from another site.
 */
@Injectable()
export class SsoCookie {
  readonly #prefix: string;
  readonly #attributes: string;

  constructor({ publicUrl }: GatewaySettings) {
    const isSecure = publicUrl.startsWith('https:');
    this.#prefix = isSecure ? '__Host-atoll-sso-' : 'atoll-sso-';
    this.#attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  }

  /** The token of the log-in that has this state. Empty where this browser has begun none. */
  read(request: FastifyRequest, state: string): string {
    return this.#all(request).get(state)?.slice(0, 256) ?? '';
  }

  set(request: FastifyRequest, reply: FastifyReply, flow: { state: string; token: string; lifeSeconds: number }): void {
    if (!stateForm.test(flow.state)) throw new Error('A log-in at a provider has no state.');
    // Browsers send what they were given first, first (RFC 6265, 5.4).
    for (const state of [...this.#all(request).keys()].slice(0, 1 - mostAtOnce)) this.#clear(reply, state);
    reply.header(
      'set-cookie',
      `${this.#prefix}${flow.state}=${flow.token}; Max-Age=${flow.lifeSeconds}; ${this.#attributes}`,
    );
  }

  /** Where this browser has begun a log-in with this state. */
  clear(request: FastifyRequest, reply: FastifyReply, state: string): void {
    if (this.#all(request).has(state)) this.#clear(reply, state);
  }

  #clear(reply: FastifyReply, state: string): void {
    reply.header('set-cookie', `${this.#prefix}${state}=; Max-Age=0; ${this.#attributes}`);
  }

  /** The tokens, by state. */
  #all({ headers }: FastifyRequest): Map<string, string> {
    const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim().split(/=(.*)/s));
    return new Map(
      pairs.flatMap(([name = '', token = '']): [string, string][] => {
        const state = name.startsWith(this.#prefix) ? name.slice(this.#prefix.length) : '';
        return stateForm.test(state) ? [[state, token]] : [];
      }),
    );
  }
}
