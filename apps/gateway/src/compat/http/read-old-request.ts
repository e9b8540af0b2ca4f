import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Nothing, type WireRules } from '@atoll/contracts';
import { invalidInput, isAppError, type FieldError } from '@atoll/errors';
import { GatewaySettings } from '../../gateway-options.js';
import { callContext, timeLeftMs } from '../../requests/call-context.js';
import { declaredBy, read } from '../../requests/read-request.js';
import { queryFaults } from '../../requests/strictness.js';
import { jsonBodyOf } from './old-bodies.js';

/** Old clients send digits for whole numbers in bodies too. */
const rules: WireRules = { unknownFields: 'omit', isText: true };

/**
 * As `ReadRequest`, which old clients would not pass: what a call does not know of its query and body is ignored, and
 * so is the whole body of a call that takes none, whatever it is.
 */
@Injectable()
export class ReadOldRequest implements CanActivate {
  constructor(private readonly settings: GatewaySettings) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const { params, query, body } = declaredBy(context);
    // A parameter that is repeated and known is refused as no text.
    const faults: FieldError[] = queryFaults(request).filter(({ code }) => code !== 'repeated');
    if (faults.length === 0) {
      request.params = read(params, request.params, faults, rules);
      request.query = query === Nothing ? {} : read(query, { ...(request.query as object) }, faults, rules);
      request.body = body === Nothing ? {} : readBody(request, (json) => read(body, json, faults, rules), faults);
    }
    const call =
      request.caller && callContext(request, request.caller, timeLeftMs(request, this.settings.deadlineMs), faults);
    if (faults.length > 0) throw invalidInput(faults);
    request.callContext = call;
    return true;
  }
}

/** The faults of the body beside those of path and query. */
function readBody(request: FastifyRequest, readJson: (json: unknown) => unknown, faults: FieldError[]): unknown {
  try {
    return readJson(jsonBodyOf(request));
  } catch (error) {
    if (!isAppError(error) || !error.details.errors) throw error;
    for (const fault of error.details.errors) faults.push(fault);
    return undefined;
  }
}
