import { RouteConfig } from '@nestjs/platform-fastify';
import { FASTIFY_ROUTE_CONFIG_METADATA } from '@nestjs/platform-fastify/constants.js';
import type { FastifyContextConfig } from 'fastify';

/**
 * Adds to a route's configuration. Nest's own decorator replaces it, so that of two on one handler only one would hold.
 */
export function ConfigureRoute(config: FastifyContextConfig): MethodDecorator {
  return (target, property, descriptor) => {
    const before = Reflect.getMetadata(FASTIFY_ROUTE_CONFIG_METADATA, descriptor.value as object) as
      | FastifyContextConfig
      | undefined;
    RouteConfig({ ...before, ...config })(target, property, descriptor);
  };
}
