import type { Duplex } from 'node:stream';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { NestLogger } from '@atoll/service';
import { serveConsole } from './console/console-files.js';
import { ProblemFilter } from './errors/problem-filter.js';
import { answerSocketError, refuseTunnel } from './errors/socket-errors.js';
import type { GatewayOptions } from './gateway-options.js';
import { GatewayModule } from './gateway.module.js';
import { serveDocumentation } from './openapi/documentation.js';
import { Answered } from './health/answered.js';
import { acceptJsonBodies } from './requests/body-parser.js';
import { installHooks, refuseUnroutable } from './requests/hooks.js';
import { servePages } from './pages/pages.js';
import { originForm } from './requests/path.js';
import { isTerminalUpgrade, serveTerminals } from './terminals/terminal-upgrades.js';
import { requestId } from './requests/request-id.js';
import { declareRequestState } from './requests/request-state.js';

export { GatewayEnv, optionsFrom } from './env.js';

const maxBodyBytes = 64 * 1024;
const maxHeaderBytes = 16 * 1024;
const requestTimeoutMs = 30_000;
const headTimeoutMs = 15_000;
/** How often Node looks for requests that take longer than that. */
const timeoutCheckMs = 5_000;

/** The gateway, initialised and not listening: `listen()` it, or `inject()` into it. `close()` drains it. */
export async function createGateway(options: GatewayOptions): Promise<NestFastifyApplication> {
  const noted = (status: number, requestId: string): void => app.get(Answered).recordUnread(status, requestId);
  const adapter = new FastifyAdapter({
    bodyLimit: maxBodyBytes,
    // A missing Host is refused by a hook, as a problem; Node's own refusal has no body.
    http: {
      maxHeaderSize: maxHeaderBytes,
      requireHostHeader: false,
      headersTimeout: headTimeoutMs,
      connectionsCheckingInterval: timeoutCheckMs,
      shouldUpgradeCallback: isTerminalUpgrade,
    },
    requestTimeout: requestTimeoutMs,
    // Ids are checked by their own rules; a long one is no worse than a wrong one.
    routerOptions: { maxParamLength: maxHeaderBytes },
    // Open connections go on to be served while the server closes.
    return503OnClosing: false,
    skipMiddie: true,
    rewriteUrl: originForm,
    genReqId: requestId,
    clientErrorHandler: (error, socket) => answerSocketError(error, socket, noted),
    frameworkErrors: (error: Error, request: FastifyRequest, reply: FastifyReply) => void refuseUnroutable(app, error, request, reply),
  });
  const app = await NestFactory.create<NestFastifyApplication>(GatewayModule.register(options), adapter, {
    abortOnError: false,
    bodyParser: false,
    logger: new NestLogger(options.logger),
  });
  app.setGlobalPrefix('api', { exclude: ['livez', 'readyz', 'metrics'] });
  app.useGlobalFilters(app.get(ProblemFilter));
  const instance = adapter.getInstance();
  // An expectation is not asked for (RFC 9110, 10.1.1): the request is answered as any other, instead of by Node's bare 417.
  instance.server.on('checkExpectation', (request, response) => instance.server.emit('request', request, response));
  instance.server.on('connect', (_request: unknown, socket: Duplex) => refuseTunnel(socket, noted));
  serveTerminals(app, instance, noted);
  declareRequestState(instance);
  acceptJsonBodies(instance);
  installHooks(app, instance);
  serveDocumentation(app);
  const hasConsole = serveConsole(instance, options.consoleFolder);
  if (!hasConsole) instance.get('/', { config: { public: true } }, (_request, reply) => reply.redirect('/api/docs'));
  servePages(instance);
  await app.init();
  await instance.ready();
  return app;
}
