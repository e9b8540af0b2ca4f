import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewaySettings } from '../gateway-options.js';

/** Holds a log-in at a provider together with the browser that began it. `Lax`, since it comes back from another site. */
@Injectable()
export class SsoCookie {
  readonly #name: string;
  readonly #attributes: string;

  constructor({ publicUrl }: GatewaySettings) {
    const isSecure = publicUrl.startsWith('https:');
    this.#name = isSecure ? '__Host-atoll-sso' : 'atoll-sso';
    this.#attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  }

  /** Empty where there is none. */
  read({ headers }: FastifyRequest): string {
    const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim().split(/=(.*)/s));
    return pairs.find(([name]) => name === this.#name)?.[1]?.slice(0, 256) ?? '';
  }

  set(reply: FastifyReply, token: string, lifeSeconds: number): void {
    reply.header('set-cookie', `${this.#name}=${token}; Max-Age=${lifeSeconds}; ${this.#attributes}`);
  }

  clear(reply: FastifyReply): void {
    reply.header('set-cookie', `${this.#name}=; Max-Age=0; ${this.#attributes}`);
  }
}
