import type { OpenAPIObject } from '@nestjs/swagger';
import { removedPaths } from '../http/removed-paths.js';
import type { Operation } from './operations.js';
import { referencesTo } from './problem-responses.js';

const problems = [
  'invalid_input',
  'unauthenticated',
  'ip_not_allowed',
  'request_timeout',
  'gone',
  'uri_too_long',
  'too_many_requests',
  'internal',
  'unavailable',
] as const;

/** Documented for those who still call them; no route has them. */
export function addRemovedPaths({ paths }: OpenAPIObject): void {
  for (const { path, operationId, replacement } of removedPaths) {
    const operation: Operation = {
      operationId,
      summary: `Use ${replacement}`,
      description: `This path was removed. Use ${replacement}.`,
      deprecated: true,
      tags: ['Removed'],
      parameters: [
        {
          name: 'gpuaas_id',
          in: 'path',
          required: true,
          description: 'Id of the GPU service.',
          schema: { type: 'string' },
        },
        { $ref: '#/components/parameters/RequestId' },
      ],
      responses: referencesTo(problems),
    };
    paths[path] = { ...paths[path], get: operation };
  }
}
