import { applyDecorators, HttpCode } from '@nestjs/common';
import { ApiOperation, ApiProperty, ApiResponse, getSchemaPath, type ApiPropertyOptions } from '@nestjs/swagger';
import { Nothing, type Wire } from '@atoll/contracts';

/** The success of an old call: 200 unless clients compare with another status, and a JSON object or a list of them. */
export function OldAnswers(
  type: Wire | [Wire],
  summary: string,
  description: string,
  status: 200 | 201 = 200,
): MethodDecorator {
  const [item, isArray] = Array.isArray(type) ? [type[0], true] : [type, false];
  return applyDecorators(
    HttpCode(status),
    ApiOperation({ summary, description }),
    ApiResponse({
      status,
      description: status === 200 ? 'OK' : 'Created',
      ...(item === Nothing ? { schema: { type: 'object' } } : { type: item, isArray }),
    }),
  );
}

interface Shown {
  nullable?: boolean;
  optional?: boolean;
  example?: unknown;
}

/** A field of an old answer, for its OpenAPI document. */
function shown(
  type: ApiPropertyOptions,
  description: string,
  { nullable = false, optional = false, example }: Shown,
): PropertyDecorator {
  return ApiProperty({
    ...type,
    description,
    nullable,
    required: !optional,
    ...(example !== undefined && { example }),
  } as ApiPropertyOptions);
}

export const ShownText = (description: string, options: Shown = {}): PropertyDecorator =>
  shown({ type: String }, description, options);

export const ShownUuid = (description: string, options: Shown = {}): PropertyDecorator =>
  shown({ type: String, format: 'uuid' }, description, options);

export const ShownInstant = (description: string, options: Shown = {}): PropertyDecorator =>
  shown({ type: String, format: 'date-time' }, description, options);

export const ShownNumber = (description: string, options: Shown = {}): PropertyDecorator =>
  shown({ type: Number }, description, options);

/** Ids that are numbered, and counts. */
export const ShownInteger = (description: string, options: Shown = {}): PropertyDecorator =>
  shown({ type: 'integer' }, description, options);

export const ShownFlag = (description: string, options: Shown = {}): PropertyDecorator =>
  shown({ type: Boolean }, description, options);

export const ShownObject = (type: () => Wire, description: string, options: Shown = {}): PropertyDecorator =>
  shown({ type: () => type() }, description, options);

export const ShownList = (type: () => Wire, description: string, options: Shown = {}): PropertyDecorator =>
  shown({ type: () => type(), isArray: true }, description, options);

/** An object whose fields have any names, and values of one class, which the controller names in `@ApiExtraModels`. */
export const ShownMap = (type: Wire, description: string): PropertyDecorator =>
  shown({ type: 'object', additionalProperties: { $ref: getSchemaPath(type) } }, description, {});
