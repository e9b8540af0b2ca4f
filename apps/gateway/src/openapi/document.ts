import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { Problem } from '../errors/problem.js';
import { describeFields } from './glossary.js';
import { unkept } from '../answers/answers.js';
import { answerHeaders } from '../answers/headers.js';
import { linkOperations } from './links.js';
import { operationsOf } from './operations.js';
import { addHeaders, addProblems, dropUnused, problemResponses } from './problem-responses.js';
import { addRemovedPaths } from './removed-operations.js';
import { commonParameters, describeParameters } from './parameters.js';
import { describeRequests } from './request-schemas.js';
import { tags } from './tags.js';
import { tidySchemas } from './tidy-schemas.js';

const description = `The control plane of a GPU cloud.

Every error is an \`application/problem+json\` body; [the codes](/api/docs/errors).
Requests are refused in this order: credentials (401), address (403), rate limit (429), route (404, 405, 410), input (400), object (404, 403).
A batch of usage facts, which may be large, is refused (403) before it is read unless a platform_admin sends it.
A request that waits too long behind other requests of its team, or by keys that the same user was shown, is refused (429) after its input was read.
Unknown body fields and query parameters are refused. An object of another team is reported as not found;
so is an unknown id in a filter of a listing.`;

/** The OpenAPI 3.1 document, from the same classes that validate. */
export function openApiDocument(app: INestApplication): OpenAPIObject {
  const builder = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Atoll')
    .setDescription(description)
    .setVersion('1')
    .setLicense('Apache-2.0', 'https://www.apache.org/licenses/LICENSE-2.0')
    .addServer('/')
    .addSecurity('bearer', {
      type: 'http',
      scheme: 'bearer',
      description: 'An API key, or the access token of a session.',
    })
    .addApiKey({ type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key.' }, 'api_key')
    .addSecurityRequirements('bearer')
    .addSecurityRequirements('api_key');
  for (const [name, meaning] of tags) builder.addTag(name, meaning);
  const document = SwaggerModule.createDocument(app, builder.build(), {
    extraModels: [Problem],
    operationIdFactory: (_controller, handler) => operationIdOf(handler),
  });
  complete(document);
  return document;
}

/** The handler’s name. Of a route with two paths, the shorter one leaves the time zone out. */
function operationIdOf(handler: string): string {
  return handler.replace('[0]', 'InUtc').replace('[1]', '');
}

/**
 * What holds for every operation is not declared at each: problems, headers, parameters, and how schemas are written.
 */
function complete(document: OpenAPIObject): void {
  const schemas = document.components?.schemas ?? {};
  document.components = {
    ...document.components,
    schemas,
    responses: problemResponses(),
    parameters: commonParameters,
    headers: answerHeaders,
  };
  for (const { operation, path, method } of operationsOf(document)) {
    addHeaders(operation);
    addProblems(operation, method);
    describeParameters(operation, path, method);
    delete (operation as { [unkept]?: true })[unkept];
  }
  tidySchemas(document);
  describeFields(document);
  describeRequests(document);
  linkOperations(document);
  addRemovedPaths(document);
  dropUnused(document.components.responses ?? {}, document);
}
