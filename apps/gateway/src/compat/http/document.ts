import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, getSchemaPath, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { unkept } from '../../answers/answers.js';
import { keepsAnswer, operationsOf } from '../../openapi/operations.js';
import { commonParameters } from '../../openapi/parameters.js';
import { acceptNumbersInRequests } from '../../openapi/request-schemas.js';
import { tidySchemas } from '../../openapi/tidy-schemas.js';
import { OldError } from './old-error.js';

const description = `Older forms of the API, for programs that were written for them.

Unknown fields and parameters are ignored. Every answer is JSON, and every success 200 unless an operation says otherwise.`;

/** The errors that any old call may answer. */
const errors: Readonly<Record<number, string>> = {
  400: 'Invalid input',
  401: 'Not authenticated',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Method not allowed',
  408: 'Request timeout',
  409: 'Conflict',
  413: 'Request too large',
  414: 'URI too long',
  415: 'Unsupported media type',
  422: 'Cannot be done',
  429: 'Too many requests',
  431: 'Request header fields too large',
  500: 'Internal error',
  501: 'Not served',
  503: 'Unavailable',
  504: 'No answer in time',
};

/** The OpenAPI 3.1 document of the mount, from the classes that read its requests and shape its answers. */
export function compatDocument(app: INestApplication): OpenAPIObject {
  const builder = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Atoll, compatibility mount')
    .setDescription(description)
    .setVersion('1')
    .addServer('/')
    .addSecurity('bearer', {
      type: 'http',
      scheme: 'bearer',
      description: 'An API key, or the access token of a session.',
    })
    .addApiKey({ type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key.' }, 'api_key')
    .addSecurityRequirements('bearer')
    .addSecurityRequirements('api_key');
  const document = SwaggerModule.createDocument(app, builder.build(), {
    extraModels: [OldError],
    operationIdFactory: (_controller, handler) => handler,
  });
  const content = { 'application/json': { schema: { $ref: getSchemaPath(OldError) } } };
  document.components = { ...document.components, parameters: { IdempotencyKey: commonParameters.IdempotencyKey } };
  for (const { operation, method } of operationsOf(document)) {
    if (keepsAnswer(operation, method))
      operation.parameters = [...(operation.parameters ?? []), { $ref: '#/components/parameters/IdempotencyKey' }];
    delete (operation as { [unkept]?: true })[unkept];
    for (const [status, meaning] of Object.entries(errors))
      operation.responses[status] = { description: meaning, content };
  }
  tidySchemas(document);
  acceptNumbersInRequests(document);
  return document;
}
