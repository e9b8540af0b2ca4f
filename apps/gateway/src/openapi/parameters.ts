import { keepsAnswer, type Method, type Operation, type Parameter } from './operations.js';

export const commonParameters = {
  RequestId: {
    name: 'X-Request-Id',
    in: 'header' as const,
    required: false,
    description:
      'Id of the request in its response and in logs. 1 to 128 letters, digits, dots, hyphens and underscores are kept; ' +
      'anything else is replaced by a new UUID.',
    schema: { type: 'string' as const },
    example: '3d1c1f0e-6a3f-4a57-8b1c-0f8f6a7b9c21',
  },
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header' as const,
    required: false,
    description:
      'Key under which the response is kept for 24 hours: 1 to 255 visible ASCII characters. A repetition with the same key ' +
      'gets the first response again, secrets masked. Send the same bytes: another body or query with the key is 422, also ' +
      'where the body is the same JSON with other white space or order.',
    schema: { type: 'string' as const, pattern: '^[!-~]{1,255}$' },
    example: 'c0ffee-42',
  },
};

/** A time zone may be empty, which means the same as left out. */
function emptyOf({ name }: Parameter): { allowEmptyValue?: true } {
  return name === 'timezone' ? { allowEmptyValue: true } : {};
}

/** Path parameters in the order of the path, then the others, then the headers that every operation has. */
export function describeParameters(operation: Operation, path: string, method: Method): void {
  const declared = (operation.parameters ?? []).filter((parameter): parameter is Parameter => !('$ref' in parameter));
  const segments = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  // A handler of two paths declares the segments of the longer one; and a segment of a path is never left out.
  const ofPath = segments.flatMap((name) =>
    declared.filter((parameter) => parameter.in === 'path' && parameter.name === name),
  );
  const headers = ['RequestId', ...(keepsAnswer(operation, method) ? ['IdempotencyKey'] : [])];
  operation.parameters = [
    ...ofPath.map((parameter) => ({ ...parameter, required: true })),
    ...declared
      .filter((parameter) => parameter.in !== 'path')
      .map((parameter) => ({ ...parameter, ...emptyOf(parameter) })),
    ...headers.map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ];
}
