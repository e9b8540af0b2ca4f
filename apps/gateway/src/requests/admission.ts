import { Injectable } from '@nestjs/common';
import { AppError, isAppError, type ErrorCode } from '@atoll/errors';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Authenticator, type Attempt } from '../authentication/authenticator.js';
import { clientAddress, networkOf } from '../authentication/client-address.js';
import type { Verified } from '../authentication/credential-cache.js';
import { presentedKey } from '../authentication/presented-key.js';
import { GatewaySettings } from '../gateway-options.js';
import { RateLimits } from '../rate-limits/rate-limits.js';
import { pathOf } from './path.js';

const maxUrlLength = 8 * 1024;
/** A failed authentication of an address: a key that is not valid, or not valid from there. */
const failures: ReadonlySet<ErrorCode> = new Set(['unauthenticated', 'ip_not_allowed']);
const billing = /^\/api\/(?:team|workspace)-billing(?:\/|$)/;

/**
 * Decides who may come in at all, before the body is read and in this order: 401, 403 for the address, 429. An address
 * that failed too often gets its 429 first: its keys are not looked up any more, unless this gateway knows them.
 */
@Injectable()
export class Admission {
  constructor(
    private readonly authenticator: Authenticator,
    private readonly limits: RateLimits,
    private readonly settings: GatewaySettings,
  ) {}

  /** Runs for every request, also for those with a malformed URL. Throws the refusal. */
  async admit(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (needsCaller(request)) await this.#identify(request, reply);
    if ((request.raw.url?.length ?? 0) > maxUrlLength) throw new AppError('uri_too_long', 'The path and query are longer than 8 KiB.');
  }

  async #identify(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const address = addressOf(request, this.settings);
    const verified = await this.#authenticate(request, reply, address);
    const path = request.is404 ? pathOf(request) : (request.routeOptions.url ?? '');
    await this.limits.authenticated(verified.caller, billing.test(path), reply);
  }

  async #authenticate(request: FastifyRequest, reply: FastifyReply, address: string): Promise<Verified> {
    const attempt = this.#attempt(networkOf(address), reply);
    try {
      const key = presentedKey(request.raw.rawHeaders);
      if (key !== null) {
        const verified = await this.authenticator.verify(key, attempt);
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
    throw new AppError('unauthenticated', 'This call needs an API key, as Authorization: Bearer <API_KEY> or x-api-key: <API_KEY>.');
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

/** The address that a request comes from, as far as the proxies before the gateway are trusted. */
export function addressOf(request: FastifyRequest, { trustedProxies }: Pick<GatewaySettings, 'trustedProxies'>): string {
  return clientAddress(request.raw.socket.remoteAddress, forwardedFor(request), trustedProxies);
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
