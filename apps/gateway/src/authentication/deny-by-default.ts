import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { AppError } from '@atoll/errors';
import type { FastifyRequest } from 'fastify';
import { publicMetadata } from './public.js';

/**
 * The second lock: whatever way a request took past the admission hook, no handler runs without a caller unless it says
 * `@Public()`.
 */
@Injectable()
export class DenyByDefault implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    if (context.switchToHttp().getRequest<FastifyRequest>().caller) return true;
    if (Reflect.getMetadata(publicMetadata, context.getHandler()) === true) return true;
    throw new AppError('unauthenticated', 'This call needs an API key.');
  }
}
