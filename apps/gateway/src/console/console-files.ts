import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { AppError } from '@atoll/errors';

declare module 'fastify' {
  interface FastifyInstance {
    /** Sends the page of the console, where there is one. */
    sendConsole?: (reply: FastifyReply) => void;
  }
}

/** Where the build puts the console: beside the built gateway. */
const builtConsole = fileURLToPath(new URL('../../../console/web', import.meta.url));

/**
 * Headers of the console's page. Script and style come from files of this origin alone, and no text ever becomes
 * markup: with `trusted-types 'none'` no code can turn a string into HTML or script, whatever a team is called.
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

type Encoding = 'br' | 'gzip' | 'identity';

/** A file of the console as it is sent, the smallest form first. */
interface Asset {
  type: string;
  forms: readonly { encoding: Encoding; bytes: Buffer }[];
}

const types: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

const encodings = [
  ['br', '.br'],
  ['gzip', '.gz'],
  ['identity', ''],
] as const;

/** All files of a folder with their compressed forms, by their names: about 2 MB. */
function readAssets(folder: string): Map<string, Asset> {
  const files = new Set(readdirSync(folder));
  const names = [...files].filter((name) => !/\.(?:br|gz)$/.test(name));
  return new Map(
    names.map((name) => {
      const forms = encodings
        .filter(([, suffix]) => files.has(name + suffix))
        .map(([encoding, suffix]) => ({ encoding, bytes: readFileSync(join(folder, name + suffix)) }));
      return [name, { type: types[extname(name)] ?? 'application/octet-stream', forms }];
    }),
  );
}

/** Whether an `Accept-Encoding` names the encoding, and not with a weight of 0 (RFC 9110, 12.5.3). */
function takes(accepted: string, encoding: Encoding): boolean {
  return accepted.split(',').some((entry) => {
    const [name = '', weight = 'q=1'] = entry.split(';').map((part) => part.trim().toLowerCase());
    return name === encoding && Number(weight.replace('q=', '')) > 0;
  });
}

/**
 * Serves the built console: its page at each of its own addresses (the list that it brings with it), never kept without
 * being asked for again; and its files under `/assets`, whose names change with their content, kept for a year. A
 * mistyped address gets the page too, from `ProblemFilter`. Nothing else of the folder is served. All is read here,
 * once: a build in the same folder takes no file from a page that is open. Returns whether there is a console.
 */
export function serveConsole(instance: FastifyInstance, folder = builtConsole): boolean {
  const pageFile = join(folder, 'index.html');
  if (!existsSync(pageFile)) return false;
  const page = readFileSync(pageFile, 'utf8');
  const assets = readAssets(join(folder, 'assets'));
  const paths = JSON.parse(readFileSync(join(folder, 'top-level-paths.json'), 'utf8')) as string[];
  const config = { public: true };
  const sendConsole = (reply: FastifyReply): FastifyReply =>
    reply.headers(consoleHeaders).header('cache-control', 'no-cache').type('text/html; charset=utf-8').send(page);
  instance.decorate('sendConsole', sendConsole);
  for (const path of paths.flatMap((top) => (top === '/' ? [top] : [top, `${top}/*`]))) {
    instance.get(path, { config }, (_request, reply) => sendConsole(reply));
  }
  instance.get<{ Params: { file: string } }>('/assets/:file', { config }, (request, reply) => {
    const asset = assets.get(request.params.file);
    if (!asset) throw new AppError('not_found', 'There is nothing at this path.');
    const accepted = String(request.headers['accept-encoding'] ?? '');
    const form = asset.forms.find(({ encoding }) => encoding === 'identity' || takes(accepted, encoding));
    if (form && form.encoding !== 'identity') reply.header('content-encoding', form.encoding);
    return reply
      .headers({ 'cache-control': 'public, max-age=31536000, immutable', vary: 'accept-encoding' })
      .type(asset.type)
      .send(form?.bytes);
  });
  return true;
}
