import { applyDecorators, Header, HttpCode } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import { ApiOperation, ApiResponse } from '@nestjs/swagger';
import { Nothing, type Wire } from '@atoll/contracts';
import { headersOf } from '../openapi/headers.js';

/** What a route answers when all goes well, for callers and for the OpenAPI document: status, body, and a line on what it does. */
export function Answers(status: 200 | 201 | 202 | 204, type: Wire, summary: string): MethodDecorator {
  const description = status === 204 ? 'Done.' : status === 201 ? 'Made.' : 'As asked.';
  return applyDecorators(
    HttpCode(status),
    ApiOperation({ summary }),
    ApiResponse({ status, description, ...(type !== Nothing && { type }) }),
  );
}

/** A listing: `{data, pagination}` with a `Link` header. `firstPage` is the number its pages count from. */
export function AnswersPage(type: Wire, firstPage: 0 | 1, summary: string): MethodDecorator {
  return applyDecorators(
    HttpCode(200),
    RouteConfig({ firstPage }),
    ApiOperation({ summary }),
    ApiResponse({ status: 200, description: 'The page asked for.', type, headers: headersOf('Link') }),
  );
}

/** An answer passed on as the JSON that came over the bus: `rpc.callForJson`. */
export function AnswersJson(type: Wire, summary: string): MethodDecorator {
  return applyDecorators(Answers(200, type, summary), Header('content-type', 'application/json; charset=utf-8'));
}
