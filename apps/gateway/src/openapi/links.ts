import type { OpenAPIObject } from '@nestjs/swagger';
import { operationsOf, schemaNamedBy, type Operation, type Parameter } from './operations.js';

/** Where the id of a new object stands in the response that creates it, by the name that others know it by. */
const created: Record<string, { parameter: string; pointer: string }> = {
  Team: { parameter: 'team_id', pointer: '/id' },
  TeamMember: { parameter: 'user_id', pointer: '/user_id' },
  Workspace: { parameter: 'workspace_id', pointer: '/id' },
  ImagePolicy: { parameter: 'id', pointer: '/id' },
  Gpuaas: { parameter: 'gpuaas_id', pointer: '/gpuaas_id' },
  GpuNode: { parameter: 'node_id', pointer: '/node_id' },
  Subscription: { parameter: 'subscription_id', pointer: '/subscription_id' },
  BaremetalNode: { parameter: 'node_id', pointer: '/node_id' },
  BaremetalInstance: { parameter: 'instance_id', pointer: '/instance_id' },
  SharedVolume: { parameter: 'volume_id', pointer: '/volume_id' },
  Vm: { parameter: 'instance_id', pointer: '/instance_id' },
  Workload: { parameter: 'workload_id', pointer: '/workload_id' },
};

/** Operations that take the id in their body. */
const byBody: Record<string, readonly string[]> = {
  Subscription: ['unsubscribeFromPool'],
};

/**
 * Links what creates an object to what uses it: each operation with the object’s id in its path, its query or its body.
 * The other segments of the path are those of the request itself.
 */
export function linkOperations(document: OpenAPIObject): void {
  const operations = operationsOf(document).map(({ operation }) => operation);
  for (const { operation, path, method } of operationsOf(document)) {
    if (method !== 'post') continue;
    for (const status of ['201', '202']) {
      const response = operation.responses[status];
      if (!response || '$ref' in response) continue;
      const schema = schemaNamedBy(response.content?.['application/json']?.schema);
      const made = schema === undefined ? undefined : created[schema];
      if (!schema || !made) continue;
      const links = operations.flatMap((target) => linkTo(target, operation, path, made));
      const bodies = (byBody[schema] ?? []).map((id) => [id, bodyLink(id, made)] as const);
      response.links = Object.fromEntries<object>([...links, ...bodies]);
    }
  }
}

function linkTo(
  target: Operation,
  source: Operation,
  path: string,
  { parameter, pointer }: { parameter: string; pointer: string },
): [string, object][] {
  const { operationId = '' } = target;
  const needed = parametersOf(target).filter(
    ({ name, in: place, required }) => place === 'path' || (place === 'query' && (required || name === parameter)),
  );
  if (target === source || !needed.some(({ name }) => name === parameter)) return [];
  const known = needed.map(({ name }) => [name, valueOf(name, parameter, pointer, path)] as const);
  if (known.some(([, value]) => value === undefined)) return [];
  return [
    [
      operationId,
      { operationId, parameters: Object.fromEntries(known), description: `The \`${parameter}\` of ${operationId}.` },
    ],
  ];
}

function valueOf(name: string, parameter: string, pointer: string, path: string): string | undefined {
  if (name === parameter) return `$response.body#${pointer}`;
  return path.includes(`{${name}}`) ? `$request.path.${name}` : undefined;
}

function bodyLink(operationId: string, { parameter, pointer }: { parameter: string; pointer: string }): object {
  return {
    operationId,
    requestBody: { [parameter]: `$response.body#${pointer}` },
    description: `The \`${parameter}\` of ${operationId}.`,
  };
}

function parametersOf({ parameters = [] }: Operation): Parameter[] {
  return parameters.filter((parameter): parameter is Parameter => !('$ref' in parameter));
}
