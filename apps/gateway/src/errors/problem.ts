import type { AppError, ErrorCode, FieldError } from '@atoll/errors';
import { ApiProperty } from '@nestjs/swagger';
import { errorCodes, mostShownFaults } from '@atoll/errors';
import { errorKinds } from './error-kinds.js';

const problemContentType = 'application/problem+json; charset=utf-8';

class ProblemField implements FieldError {
  @ApiProperty({ description: 'Path to the field (`members.1.email`), or name of the parameter.', example: 'limit' })
  path!: string;

  @ApiProperty({ description: 'Rule that was broken, for programs.', example: 'isInt' })
  code!: string;

  @ApiProperty({
    description: 'Sentence that says what is allowed, for people.',
    example: 'limit must be a whole number from 1 to 100',
  })
  message!: string;
}

/**
 * RFC 9457 with a code, the request's id, the faulty fields, and two repetitions for simple clients: every error of the
 * API.
 */
export class Problem {
  @ApiProperty({
    description: 'Address at which the kind of error is explained.',
    format: 'uri-reference',
    example: '/api/docs/errors#invalid_input',
  })
  type!: string;

  @ApiProperty({ description: 'Name of the kind of error.', example: 'Invalid input' })
  title!: string;

  @ApiProperty({ type: 'integer', description: 'HTTP status of the response.', example: 400 })
  status!: number;

  @ApiProperty({
    description: 'Sentence that says what is wrong and what is allowed, for people.',
    example: 'limit must be a whole number from 1 to 100',
  })
  detail!: string;

  @ApiProperty({ description: 'Path of the request, without its query.', example: '/api/team' })
  instance!: string;

  @ApiProperty({
    description: 'Kind of error, for programs.',
    enum: [...errorCodes],
    enumName: 'ErrorCode',
    example: 'invalid_input',
  })
  code!: ErrorCode;

  @ApiProperty({
    description: 'Id of the request in logs and in `X-Request-Id`.',
    example: '3d1c1f0e-6a3f-4a57-8b1c-0f8f6a7b9c21',
  })
  request_id!: string;

  @ApiProperty({
    type: ProblemField,
    isArray: true,
    required: false,
    maxItems: mostShownFaults,
    description: 'Faults of the input, one for each field: the first 100. `detail` says how many there are.',
  })
  errors?: FieldError[];

  @ApiProperty({ required: false, description: 'Ticket for the second step of a log-in, of `second_factor_required`.' })
  ticket?: string;

  @ApiProperty({
    type: String,
    isArray: true,
    required: false,
    description: 'Ways to provide the second factor.',
    example: ['totp'],
  })
  methods?: string[];

  @ApiProperty({ type: 'integer', required: false, description: 'Life of the ticket in seconds.', example: 300 })
  expires_in?: number;

  @ApiProperty({ description: 'Repetition of `detail`.', example: 'limit must be a whole number from 1 to 100' })
  message!: string;

  @ApiProperty({ type: 'integer', description: 'Repetition of `status`.', example: 400 })
  statusCode!: number;
}

/** Where a problem happened. `status` only where HTTP has a closer one than the code's own. */
export interface ProblemOrigin {
  instance: string;
  requestId: string;
  status?: number;
}

export function statusOf({ code }: AppError): number {
  return errorKinds[code].status;
}

export function toProblem(error: AppError, { instance, requestId, status = statusOf(error) }: ProblemOrigin): Problem {
  const { code, message, errors, secondFactor } = error.toWire();
  return {
    type: `/api/docs/errors#${code}`,
    title: errorKinds[code].title,
    status,
    detail: message,
    instance,
    code,
    request_id: requestId,
    ...(errors && { errors }),
    ...secondFactor,
    message,
    statusCode: status,
  };
}

/** The headers an error calls for, besides its body. */
export function problemHeaders({ code, details }: AppError): Record<string, string> {
  // Every 503 says when to try again, whether or not the service that is away could.
  const { retryAfterSeconds = code === 'unavailable' ? 1 : undefined } = details;
  return {
    'content-type': problemContentType,
    ...((code === 'unauthenticated' || code === 'second_factor_required') && { 'www-authenticate': 'Bearer' }),
    ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
  };
}
