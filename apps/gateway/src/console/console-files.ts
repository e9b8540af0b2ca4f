import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import { AppError } from '@atoll/errors';

/** Where the build puts the console: beside the built gateway. */
const builtConsole = fileURLToPath(new URL('../../../console/web', import.meta.url));

/**
 * Headers of the console's page. Script and style come from files of this origin alone, and no text ever becomes markup: with `trusted-types 'none'` no
 * code can turn a string into HTML or script, whatever a team is called.
 */
const consoleHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
};

/**
 * Serves the built console: its page at each of its own addresses (the list that it brings with it), never kept without being asked for again; and its
 * files under `/assets`, whose names change with their content, kept for a year. Nothing else of the folder is served. Returns whether there is a console.
 */
export function serveConsole(instance: FastifyInstance, folder = builtConsole): boolean {
  const pageFile = join(folder, 'index.html');
  if (!existsSync(pageFile)) return false;
  const page = readFileSync(pageFile, 'utf8');
  const assets = join(folder, 'assets');
  const names = new Set(readdirSync(assets).filter((name) => !/\.(?:br|gz)$/.test(name)));
  const paths = JSON.parse(readFileSync(join(folder, 'top-level-paths.json'), 'utf8')) as string[];
  const config = { public: true };
  for (const path of paths.flatMap((top) => (top === '/' ? [top] : [top, `${top}/*`]))) {
    instance.get(path, { config }, (_request, reply) =>
      reply.headers(consoleHeaders).header('cache-control', 'no-cache').type('text/html; charset=utf-8').send(page),
    );
  }
  void instance.register(async (scope) => {
    // Compressed files are looked for only where it was said at registration, not for each file.
    await scope.register(fastifyStatic, { root: assets, serve: false, preCompressed: true });
    scope.get<{ Params: { file: string } }>('/assets/:file', { config }, (request, reply) => {
      const { file } = request.params;
      if (!names.has(file)) throw new AppError('not_found', 'There is nothing at this path.');
      return reply.sendFile(file, assets, { immutable: true, maxAge: '365d' });
    });
  });
  return true;
}
