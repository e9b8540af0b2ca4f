import type { INestApplication } from '@nestjs/common';
import { SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';

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

/**
 * `/api/openapi.json` and the page to read and try it at `/api/docs`, with all that it loads; the document is built
 * with the first request for it.
 */
export function serveDocumentation(
  app: INestApplication,
  { title, documentOf }: { title: string; documentOf: () => OpenAPIObject },
): void {
  let document: OpenAPIObject | undefined;
  SwaggerModule.setup('api/docs', app, () => (document ??= documentOf()), {
    jsonDocumentUrl: 'api/openapi.json',
    raw: ['json'],
    customSiteTitle: title,
  });
}
