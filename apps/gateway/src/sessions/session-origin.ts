import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { networkOf } from '@atoll/contracts';
import type { SessionOrigin } from '@atoll/contracts/teams';
import type { FastifyRequest } from 'fastify';

/** What a list of sessions shows of the client: printable ASCII, as a header should be. */
const unprintable = /[^\x20-\x7e]+/g;
const maxDeviceLength = 200;

/** Where a log-in comes from. */
export const Origin = createParamDecorator((_data: unknown, context: ExecutionContext): SessionOrigin => {
  const { address, headers } = context.switchToHttp().getRequest<FastifyRequest>();
  const device = (headers['user-agent'] ?? '').replace(unprintable, ' ').trim().slice(0, maxDeviceLength);
  return { address, network: networkOf(address), device };
});
