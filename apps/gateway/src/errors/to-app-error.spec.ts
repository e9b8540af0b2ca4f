import { describe, expect, it } from '@jest/globals';
import {
  BadGatewayException,
  ForbiddenException,
  HttpException,
  NotFoundException,
  PayloadTooLargeException,
} from '@nestjs/common';
import { AppError } from '@atoll/errors';
import { toAppError } from './to-app-error.js';

describe('what an exception becomes', () => {
  it('an AppError is what it is', () => {
    const error = new AppError('conflict', 'Taken.');
    expect(toAppError(error)).toBe(error);
  });

  it.each<[string, unknown, string]>([
    ["Nest's 404", new NotFoundException('Cannot GET /secret'), 'not_found'],
    ["Nest's 413", new PayloadTooLargeException('secret'), 'payload_too_large'],
    ['any other 4xx', new ForbiddenException('secret'), 'invalid_input'],
    ["Nest's 5xx", new BadGatewayException('secret'), 'internal'],
    [
      "Fastify's, wrapped by Nest",
      new HttpException('secret', 415, { cause: { code: 'FST_ERR_CTP_INVALID_MEDIA_TYPE' } }),
      'unsupported_media_type',
    ],
    ["Fastify's", Object.assign(new Error('secret'), { code: 'FST_ERR_BAD_URL', statusCode: 400 }), 'invalid_input'],
    [
      'an aborted body',
      Object.assign(new Error('aborted secret'), { code: 'ECONNRESET', statusCode: 400 }),
      'invalid_input',
    ],
    ['a bug', new TypeError('secret is undefined'), 'internal'],
    ['a thrown text', 'secret', 'internal'],
    ['nothing', undefined, 'internal'],
    ['null', null, 'internal'],
  ])('%s', (_name, exception, code) => {
    const error = toAppError(exception);
    expect(error.code).toBe(code);
    expect(error.message).not.toContain('secret');
  });
});
