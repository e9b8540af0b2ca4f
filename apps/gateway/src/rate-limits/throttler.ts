import '@nestjs/core';

/**
 * `@nestjs/throttler` is CommonJS and requires Nest, which is ESM only. It is imported once Nest has been evaluated:
 * Jest evaluates CommonJS while it still links, and refuses to require a module of the same graph.
 */
export const { ThrottlerGuard, ThrottlerModule } = await import('@nestjs/throttler');
