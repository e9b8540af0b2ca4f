import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import type { FastifyRequest } from 'fastify';
import { Nothing, validateWire, type Wire, type WireRules } from '@atoll/contracts';
import { invalidInput, isAppError, type FieldError } from '@atoll/errors';
import { systemContext } from '@atoll/rpc';
import { GatewaySettings } from '../gateway-options.js';
import { callContext, timeLeftMs } from './call-context.js';
import { queryFaults } from './strictness.js';

/** The classes that a handler declares by `@Param()`, `@Query()` and `@Body()`; `Nothing` for what it does not take. */
interface Declared {
  params: Wire;
  query: Wire;
  body: Wire;
}

/**
 * Checks all that a request brings against what its handler declares, at once and before the handler's arguments are
 * made: path, query, body, idempotency key. A guard, since it knows the handler and costs neither RxJS nor a promise an
 * argument, as interceptors and pipes do.
 */
@Injectable()
export class ReadRequest implements CanActivate {
  constructor(private readonly settings: GatewaySettings) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const declared = declaredBy(context);
    const faults: FieldError[] = queryFaults(request);
    const { anonymous, ignoresUnknownQuery = false } = request.routeOptions.config;
    if (faults.length === 0) {
      request.params = read(declared.params, request.params, faults, { isText: true });
      request.query = read(declared.query, request.query, faults, {
        unknownFields: ignoresUnknownQuery ? 'omit' : 'refuse',
        isText: true,
      });
      request.body = read(declared.body, request.body === undefined ? {} : request.body, faults);
    }
    const timeLeft = timeLeftMs(request, this.settings.deadlineMs);
    const call = anonymous
      ? systemContext('gateway', { deadlineMs: timeLeft, requestId: request.id })
      : request.caller && callContext(request, request.caller, timeLeft, faults);
    if (faults.length > 0) throw invalidInput(faults);
    request.callContext = call;
    return true;
  }
}

const known = new WeakMap<object, Declared>();

/** What the handler of a request declares: looked up once. */
export function declaredBy(context: ExecutionContext): Declared {
  const handler = context.getHandler();
  let declared = known.get(handler);
  if (!declared) known.set(handler, (declared = declarationsOf(context.getClass(), handler.name)));
  return declared;
}

function declarationsOf(controller: { prototype: object }, method: string): Declared {
  const places = Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, method) as
    | Record<string, { index: number }>
    | undefined;
  const types = Reflect.getMetadata('design:paramtypes', controller.prototype, method) as Wire[] | undefined;
  const typeAt = (place: RouteParamtypes): Wire => {
    const key = Object.keys(places ?? {}).find((name) => name.startsWith(`${place}:`));
    return (key !== undefined && types?.[places?.[key]?.index ?? -1]) || Nothing;
  };
  return {
    params: typeAt(RouteParamtypes.PARAM),
    query: typeAt(RouteParamtypes.QUERY),
    body: typeAt(RouteParamtypes.BODY),
  };
}

/** The input as its class; adds to the faults where it is not. */
export function read(type: Wire, input: unknown, faults: FieldError[], rules: WireRules = {}): unknown {
  if (type === Nothing && isEmpty(input)) return input;
  try {
    return validateWire(type, input, rules);
  } catch (error) {
    if (!isAppError(error)) throw error;
    // Of a large body they are more than a call takes arguments.
    for (const fault of error.details.errors ?? []) faults.push(fault);
    return input;
  }
}

function isEmpty(input: unknown): boolean {
  return typeof input === 'object' && input !== null && !Array.isArray(input) && Object.keys(input).length === 0;
}
