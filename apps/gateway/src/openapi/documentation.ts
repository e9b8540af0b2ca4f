import { createHash } from 'node:crypto';
import type { INestApplication } from '@nestjs/common';
import { SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import type { FastifyInstance } from 'fastify';

/**
 * For the pages under `/api/docs`, where a reader enters a key to try a call: scripts, calls and images are their own,
 * no other page may frame them, and no link tells where it was followed. Swagger UI has styles in its page, and icons
 * as data.
 */
export const documentationHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
};

const documentPath = '/api/openapi.json';

/**
 * `/api/openapi.json` and the page to read and try it at `/api/docs`, with all that it loads. The document is built
 * with the first request for it, and its bytes are kept. It has an `ETag`, so that a client that knows it is sent none.
 */
export function serveDocumentation(
  app: INestApplication,
  { title, documentOf }: { title: string; documentOf: () => OpenAPIObject },
): void {
  let document: { bytes: Buffer; etag: string } | undefined;
  const instance = app.getHttpAdapter().getInstance() as FastifyInstance;
  instance.get(documentPath, (request, reply) => {
    const { bytes, etag } = (document ??= asBytes(documentOf()));
    reply.header('etag', etag);
    if (request.method === 'GET' && request.headers['if-none-match']?.includes(etag)) return reply.code(304).send();
    return reply.type('application/json; charset=utf-8').send(bytes);
  });
  // Without the document itself the page loads it from its address, and is small.
  const loaded = {} as OpenAPIObject;
  SwaggerModule.setup('api/docs', app, loaded, { swaggerUrl: documentPath, raw: false, customSiteTitle: title });
}

function asBytes(document: OpenAPIObject): { bytes: Buffer; etag: string } {
  const bytes = Buffer.from(JSON.stringify(document));
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` };
}
