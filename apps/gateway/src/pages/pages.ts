import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import { AppError } from '@atoll/errors';
import { linkPage, logInPage } from './html.js';

/** Scripts and calls of this origin alone, no other page may frame them, and no link tells where it was followed. */
export const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
};

/** As they are built: `libs/session-tab` beside this app. */
const scripts = ['browser.js', 'session-tab.js', 'log-in-page.js', 'link-page.js'];
const folder = new URL('../../../../libs/session-tab/src/', import.meta.url);

/**
 * The least that lets people log in and use their links, until the console takes the place of these pages: `/login`, `/link`, and
 * the scripts that they load. They use the API as any client does.
 */
export function servePages(instance: FastifyInstance): void {
  const pages = { '/login': logInPage, '/link': linkPage };
  for (const [path, html] of Object.entries(pages)) {
    instance.get(path, { config: { public: true } }, (_request, reply) =>
      reply.headers(pageHeaders).type('text/html; charset=utf-8').send(html),
    );
  }
  const texts = new Map<string, string>();
  instance.get<{ Params: { name: string } }>('/pages/:name', { config: { public: true } }, (request, reply) => {
    const { name } = request.params;
    if (!scripts.includes(name)) throw new AppError('not_found', 'No such script.');
    const text = texts.get(name) ?? readFileSync(new URL(name, folder), 'utf8');
    texts.set(name, text);
    return reply.headers(pageHeaders).type('text/javascript; charset=utf-8').send(text);
  });
}
