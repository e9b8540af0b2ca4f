import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AppError } from '@atoll/errors';
import { GatewaySettings } from '../gateway-options.js';
import { sendRefusalPage } from './refusal-page.js';
import { sendProblem } from './send-problem.js';
import { toAppError } from './to-app-error.js';

/** The one place where exceptions become answers: of hooks, parsers, the router, guards and handlers alike. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(private readonly settings: GatewaySettings) {}

  /** In which form callers get an error. */
  protected send(request: FastifyRequest, reply: FastifyReply, error: AppError): void {
    const { byLink } = request.routeOptions.config;
    const { sendConsole } = request.server;
    if (byLink && !asksForJson(request)) sendRefusalPage(request, reply, error);
    else if (sendConsole && error.code === 'not_found' && isMistyped(request)) sendConsole(reply.code(404));
    else sendProblem(request, reply, error);
  }

  catch(exception: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.answer(http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>(), exception);
  }

  answer(request: FastifyRequest, reply: FastifyReply, exception: unknown): void {
    const error = toAppError(exception);
    if (error.code === 'internal' && error !== exception)
      this.settings.logger.error({ err: exception, request_id: request.id }, 'a request failed');
    if (reply.sent) return;
    this.send(request, reply, error);
  }
}

/** Whether a browser opens an address at which there is nothing; the console says so on a page of its own. */
function isMistyped({ is404, method, headers: { accept = '' }, url }: FastifyRequest): boolean {
  return (
    is404 && (method === 'GET' || method === 'HEAD') && !/^\/api(?:[/?]|$)/.test(url) && /\btext\/html\b/i.test(accept)
  );
}

/** Whether the client is anything but a browser that follows a link. */
function asksForJson({ headers: { accept = '' } }: FastifyRequest): boolean {
  return /\bapplication\/(?:problem\+)?json\b/i.test(accept) && !/\btext\/html\b/i.test(accept);
}
