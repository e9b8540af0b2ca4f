import { Injectable } from '@nestjs/common';
import type { LoggedIn, OpenedSession } from '@atoll/contracts/teams';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewaySettings } from '../gateway-options.js';

/** The refresh token of a session, as the browser sends it. */
export interface PresentedCookie {
  refreshToken: string;
  /** As the token names it; not verified. */
  sessionId: string;
}

/** As the teams service makes it: the session's id, a number and a MAC. */
const form = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})\.[1-9]\d{0,8}\.[\w-]{43}$/;

/** The cookie that holds a refresh token: no script reads it, no other site sends it, and behind TLS no other host can set it. */
@Injectable()
export class SessionCookie {
  readonly #name: string;
  readonly #attributes: string;

  constructor({ publicUrl }: GatewaySettings) {
    const isSecure = publicUrl.startsWith('https:');
    this.#name = isSecure ? '__Host-atoll-session' : 'atoll-session';
    this.#attributes = `Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
  }

  /** Undefined where there is none, or what there is cannot be a refresh token. */
  read({ headers }: FastifyRequest): PresentedCookie | undefined {
    for (const pair of headers.cookie?.split(';') ?? []) {
      const [name, value = ''] = pair.trim().split(/=(.*)/s);
      const found = name === this.#name ? form.exec(value) : null;
      if (found) return { refreshToken: value, sessionId: found.slice(1).join('-') };
    }
    return undefined;
  }

  /** Sets the cookie of a session; gives back what the page may know of it. */
  open(reply: FastifyReply, { access_token, expires_in, user, refresh_token, refresh_expires_in }: OpenedSession): LoggedIn {
    reply.header('set-cookie', `${this.#name}=${refresh_token}; Max-Age=${refresh_expires_in}; ${this.#attributes}`);
    return { access_token, expires_in, user };
  }

  clear(reply: FastifyReply): void {
    reply.header('set-cookie', `${this.#name}=; Max-Age=0; ${this.#attributes}`);
  }
}
