import type { INestApplication } from '@nestjs/common';
import { SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { openApiDocument } from './document.js';

/** `/api/openapi.json` and the page to read and try it at `/api/docs`, with all that it loads. Built when somebody asks. */
export function serveDocumentation(app: INestApplication): void {
  let document: OpenAPIObject | undefined;
  SwaggerModule.setup('api/docs', app, () => (document ??= openApiDocument(app)), {
    jsonDocumentUrl: 'api/openapi.json',
    raw: ['json'],
    customSiteTitle: 'Atoll API',
  });
}
