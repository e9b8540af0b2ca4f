import { refreshTokensOf, type DerivedTokens } from '@atoll/api-keys';
import { Injectable } from '@nestjs/common';
import type { LoggedIn, OpenedSession } from '@atoll/contracts/teams';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { GatewaySettings } from '../gateway-options.js';

/** The refresh token of a session, as the browser sends it. */
export interface PresentedCookie {
  refreshToken: string;
  /** As the token names it. */
  sessionId: string;
}

/**
 * The cookie that holds a refresh token: no script reads it, no other site sends it, and behind TLS no other host can
 * set it.
 */
@Injectable()
export class SessionCookie {
  readonly #name: string;
  readonly #attributes: string;
  readonly #refreshTokens: DerivedTokens;

  constructor({ publicUrl, keyPepper }: GatewaySettings) {
    const isSecure = publicUrl.startsWith('https:');
    this.#name = isSecure ? '__Host-atoll-session' : 'atoll-session';
    this.#attributes = `Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
    this.#refreshTokens = refreshTokensOf(keyPepper);
  }

  /**
   * Undefined if there is no cookie, or if this platform did not issue it: an invented one must not get limits of its
   * own. Does not check whether the session is alive.
   */
  read({ headers }: FastifyRequest): PresentedCookie | undefined {
    for (const pair of headers.cookie?.split(';') ?? []) {
      const [name, value = ''] = pair.trim().split(/=(.*)/s);
      const found = name === this.#name ? this.#refreshTokens.read(value) : undefined;
      if (found) return { refreshToken: value, sessionId: found.id };
    }
    return undefined;
  }

  /** Sets the cookie of a session; returns the part that the page may know. */
  open(
    reply: FastifyReply,
    { access_token, expires_in, user, refresh_token, refresh_expires_in }: OpenedSession,
  ): LoggedIn {
    reply.header('set-cookie', `${this.#name}=${refresh_token}; Max-Age=${refresh_expires_in}; ${this.#attributes}`);
    return { access_token, expires_in, user };
  }

  clear(reply: FastifyReply): void {
    reply.header('set-cookie', `${this.#name}=; Max-Age=0; ${this.#attributes}`);
  }
}
