import { networkOf } from '@atoll/contracts';
import { Injectable } from '@nestjs/common';
import { isAppError } from '@atoll/errors';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RateLimits } from '../rate-limits/rate-limits.js';

/** Log-ins and the like, whose failures count as failed authentications of their address. */
@Injectable()
export class Attempts {
  constructor(private readonly limits: RateLimits) {}

  /**
   * Takes a token of the address first, and returns it unless the work is refused as `unauthenticated`. Throws
   * `too_many_requests` without one.
   */
  async run<T>(request: FastifyRequest, reply: FastifyReply, work: () => Promise<T>): Promise<T> {
    const refund = await this.limits.authFailure(networkOf(request.address), reply);
    try {
      const result = await work();
      await refund();
      return result;
    } catch (error) {
      if (!isAppError(error) || error.code !== 'unauthenticated') await refund();
      throw error;
    }
  }
}
