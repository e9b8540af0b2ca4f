import { networkOf, requirePlatformAdmin } from '@atoll/contracts';
import { Injectable } from '@nestjs/common';
import { AppError, isAppError, type ErrorCode } from '@atoll/errors';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Authenticator, type Attempt } from '../authentication/authenticator.js';
import { clientAddress } from '../http/client-address.js';
import type { Verified } from '../authentication/credential-cache.js';
import { presentedCredential } from '../authentication/presented-credential.js';
import { isSessionToken } from '../authentication/session-tokens.js';
import { GatewaySettings } from '../gateway-options.js';
import { RateLimits } from '../rate-limits/rate-limits.js';
import { requireOwnOrigin } from '../sessions/own-origin.js';
import { SessionCookie } from '../sessions/session-cookie.js';
import { pathOf } from '../http/path.js';

const maxUrlLength = 8 * 1024;
/** A failed authentication of an address: a key that is not valid, or not valid from there. */
const failures: ReadonlySet<ErrorCode> = new Set(['unauthenticated', 'ip_not_allowed']);
/** Routes that make a report of a bill: those of the main API, and of the earlier one. */
const billing = /^\/api\/(?:(?:team|workspace)-billing(?:\/|$)|gpuaas\/:team_id\/metrics)/;

/**
 * Decides who may come in at all, before the body is read and in this order: 401, 403 for the address, 429, 403 on a
 * route that is only for the operator. An address that failed too often gets its 429 first: its keys are not looked up
 * any more, unless this gateway knows them.
 */
@Injectable()
export class Admission {
  constructor(
    private readonly authenticator: Authenticator,
    private readonly limits: RateLimits,
    private readonly cookie: SessionCookie,
    private readonly settings: GatewaySettings,
  ) {}

  /** Runs for every request, also for those with a malformed URL. Throws the refusal. */
  async admit(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    request.address = clientAddress(
      request.raw.socket.remoteAddress,
      forwardedFor(request),
      this.settings.trustedProxies,
    );
    if (isForBrowsers(request)) await this.#admitBrowser(request, reply);
    else if (needsCaller(request)) await this.#identify(request, reply);
    if ((request.raw.url?.length ?? 0) > maxUrlLength)
      throw new AppError('uri_too_long', 'The path and query are longer than 8 KiB.');
    if (request.caller && request.routeOptions.config.operatorOnly) requirePlatformAdmin(request.caller);
  }

  async #identify(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const verified = await this.#authenticate(request, reply);
    const path = request.is404 ? pathOf(request) : (request.routeOptions.url ?? '');
    await this.limits.authenticated(verified.caller, billing.test(path), reply);
  }

  /**
   * Who logs in, refreshes or logs out has no caller yet, or needs none. A session counts by itself: many may share an
   * address.
   */
  async #admitBrowser(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { takesCookie } = request.routeOptions.config;
    const sessionId = takesCookie ? this.cookie.read(request)?.sessionId : undefined;
    if (sessionId !== undefined) await this.limits.session(sessionId, request.address, reply);
    else if (!takesCookie || !(await this.#identifySession(request, reply)))
      await this.limits.anonymous(request.address, reply);
    if (!request.routeOptions.config.byLink) requireOwnOrigin(request, this.settings.publicUrl);
  }

  /** Whose access token came without the cookie of its session. One that is worth nothing any more is as none. */
  async #identifySession(request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    if (!isSessionToken(presentedCredential(request.raw.rawHeaders) ?? '')) return false;
    try {
      await this.#identify(request, reply);
      return true;
    } catch (error) {
      if (isAppError(error) && error.code === 'unauthenticated') return false;
      throw error;
    }
  }

  async #authenticate(request: FastifyRequest, reply: FastifyReply): Promise<Verified> {
    const { address } = request;
    const attempt = this.#attempt(networkOf(address), reply);
    try {
      const credential = presentedCredential(request.raw.rawHeaders);
      if (credential !== null) {
        const verified = await this.authenticator.verify(credential, attempt);
        // From here on the log says whose request it is, also where it is refused.
        request.caller = verified.caller;
        this.authenticator.requireAddress(verified, address);
        return verified;
      }
    } catch (error) {
      if (isAppError(error) && failures.has(error.code)) await attempt.charge();
      throw error;
    }
    await this.limits.anonymous(address, reply);
    throw new AppError(
      'unauthenticated',
      'This call needs a credential: Authorization: Bearer <API_KEY>, x-api-key: <API_KEY>, or Authorization: Bearer <access token>.',
    );
  }

  /** A failed authentication takes one token of its network, whether it is charged before the look-up or after it. */
  #attempt(network: string, reply: FastifyReply): Attempt {
    let refund: (() => Promise<void>) | undefined;
    return {
      network,
      charge: async () => {
        refund ??= await this.limits.authFailure(network, reply);
      },
      refund: async () => {
        const taken = refund;
        refund = undefined;
        await taken?.();
      },
    };
  }
}

/** Log-in and what belongs to it: a route that takes no credential in a header. */
function isForBrowsers({ is404, routeOptions }: FastifyRequest): boolean {
  return !is404 && routeOptions.config.anonymous === true;
}

/** A route does unless it says otherwise; of what no route matched, all that lies under /api. */
function needsCaller(request: FastifyRequest): boolean {
  if (!request.is404) return request.routeOptions.config.public !== true;
  return isUnderApi(pathOf(request));
}

/** However the first segment is spelt. */
function isUnderApi(path: string): boolean {
  const [, first = ''] = path.split('/', 2);
  try {
    return decodeURIComponent(first) === 'api';
  } catch {
    return false;
  }
}

function forwardedFor(request: FastifyRequest): string | undefined {
  const header = request.headers['x-forwarded-for'];
  return Array.isArray(header) ? header.join(',') : header;
}
