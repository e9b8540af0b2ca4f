import { applyDecorators, Header, HttpCode } from '@nestjs/common';
import { ApiExtension, ApiOperation, ApiResponse } from '@nestjs/swagger';
import { Nothing, type Wire } from '@atoll/contracts';
import type { ErrorCode } from '@atoll/errors';
import { headersOf } from './headers.js';
import { ConfigureRoute } from '../http/route-config.js';

/** The extension of an operation in which its own refusal stands. */
export const refusal = 'x-refuses';

/** The extension of an operation that keeps no answer. */
export const unkept = 'x-unkept';

const descriptions = { 200: 'OK', 201: 'Created', 202: 'Accepted', 204: 'No Content' };

/**
 * The success of a route, for callers and for the OpenAPI document. `summary` is a verb and its object
 * (`Create a team`); `description` says in sentences what it does, and which role it requires. The handler’s name is
 * the operation’s id.
 */
export function Answers(
  status: 200 | 201 | 202 | 204,
  type: Wire,
  summary: string,
  description: string,
): MethodDecorator {
  return applyDecorators(
    HttpCode(status),
    ApiOperation({ summary, description }),
    ApiResponse({ status, description: descriptions[status], ...(type !== Nothing && { type }) }),
  );
}

/** What is passed on as JSON does not say so by itself. */
const jsonHeader = Header('content-type', 'application/json; charset=utf-8');

/** A listing: `{data, pagination}` with a `Link` header. `firstPage` is the number its pages count from. */
export function AnswersPage(type: Wire, firstPage: 0 | 1, summary: string, description: string): MethodDecorator {
  return applyDecorators(
    HttpCode(200),
    ConfigureRoute({ firstPage }),
    jsonHeader,
    ApiOperation({ summary, description }),
    ApiResponse({ status: 200, description: descriptions[200], type, headers: headersOf('Link') }),
  );
}

/** A listing whose pages count from 1, given whole and without a `Link` header unless `limit` is sent. */
export function AnswersAllOrPage(type: Wire, summary: string, description: string): MethodDecorator {
  return applyDecorators(AnswersPage(type, 1, summary, description), ConfigureRoute({ allWithoutLimit: true }));
}

/** A response that is passed on as the JSON that came over the bus: `rpc.callForJson`. */
export function AnswersJson(type: Wire, summary: string, description: string): MethodDecorator {
  return applyDecorators(Answers(200, type, summary, description), jsonHeader);
}

/** For the OpenAPI document: a refusal of this route that others do not have. */
export function Refuses(code: ErrorCode): MethodDecorator {
  return ApiExtension(refusal, code);
}

/**
 * A POST that ignores `Idempotency-Key`, as it hands out what is shown once, or keeps nothing: its requests are read
 * without the key, and the OpenAPI document does not offer it.
 */
export function KeepsNoAnswer(): MethodDecorator {
  return applyDecorators(ApiExtension(unkept, true), ConfigureRoute({ keepsNoAnswer: true }));
}

/**
 * A route that may change its own caller (keys, roles, teams, zone): the next call of that user looks the key up again.
 */
export function ChangesCaller(): MethodDecorator {
  return ConfigureRoute({ changesCaller: true });
}
