import { HttpException } from '@nestjs/common';
import { AppError, isAppError, type ErrorCode } from '@atoll/errors';

/** What Fastify throws before a handler runs, in the API's words. */
const byFastifyCode: Record<string, [ErrorCode, string]> = {
  FST_ERR_BAD_URL: ['invalid_input', 'The path holds malformed percent-encoding.'],
  FST_ERR_MAX_PARAM_LENGTH: ['uri_too_long', 'A segment of the path is too long.'],
  FST_ERR_CTP_BODY_TOO_LARGE: [
    'payload_too_large',
    'The body is larger than this path takes: 64 KiB, unless its documentation says more.',
  ],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type', 'A body is taken as application/json only.'],
  // Of the files of the documentation: a way out of their folder leads nowhere, as any other name that none of them
  // has.
  FST_STATIC_FORBIDDEN_PATH: ['not_found', 'There is nothing at this path.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['invalid_input', 'The body is not as long as Content-Length says.'],
};

const byStatus: Record<number, [ErrorCode, string]> = {
  404: ['not_found', 'There is nothing at this path.'],
  413: ['payload_too_large', 'The request is too large.'],
  414: ['uri_too_long', 'The URI is too long.'],
  415: ['unsupported_media_type', 'A body is taken as application/json only.'],
};

interface HttpFault {
  code?: unknown;
  statusCode?: unknown;
}

/** Converts any exception to the error for the caller. Unexpected ones become `internal`, without their message. */
export function toAppError(exception: unknown): AppError {
  if (isAppError(exception)) return exception;
  const fault = (exception instanceof HttpException ? (exception.cause ?? exception) : exception) as
    | HttpFault
    | null
    | undefined;
  const known = byFastifyCode[String(fault?.code)];
  if (known) return new AppError(...known, {}, { cause: exception });
  const status = exception instanceof HttpException ? exception.getStatus() : fault?.statusCode;
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return new AppError(
      ...(byStatus[status] ?? (['invalid_input', 'The request could not be read.'] as const)),
      {},
      { cause: exception },
    );
  }
  return new AppError('internal', 'Something went wrong on our side.', {}, { cause: exception });
}
