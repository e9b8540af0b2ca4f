import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { NestLogger } from '@atoll/service';
import { createAdapter } from './adapter.js';
import { serveConsole } from './console/console-files.js';
import { ProblemFilter } from './errors/problem-filter.js';
import type { GatewayOptions } from './gateway-options.js';
import { GatewayModule } from './gateway.module.js';
import { openApiDocument } from './openapi/document.js';
import { serveDocumentation } from './openapi/documentation.js';
import { acceptJsonBodies } from './requests/body-parser.js';
import { hookPartsOf, installHooks } from './requests/hooks.js';
import { isTerminalUpgrade, serveTerminals } from './terminals/terminal-upgrades.js';

export { listenCompat } from './compat/listen-compat.js';
export { GatewayEnv, gatewayListeners, gatewaySettings, optionsFrom } from './env.js';

/** The gateway, initialised and not listening: `listen()` it, or `inject()` into it. `close()` drains it. */
export async function createGateway(options: GatewayOptions): Promise<NestFastifyApplication> {
  const adapter = createAdapter(() => hookPartsOf(app), isTerminalUpgrade);
  const app = await NestFactory.create<NestFastifyApplication>(GatewayModule.register(options), adapter, {
    abortOnError: false,
    bodyParser: false,
    logger: new NestLogger(options.logger),
  });
  app.setGlobalPrefix('api', { exclude: ['livez', 'readyz', 'metrics'] });
  app.useGlobalFilters(app.get(ProblemFilter));
  const instance = adapter.getInstance();
  serveTerminals(app, instance);
  acceptJsonBodies(instance);
  installHooks(instance, hookPartsOf(app));
  serveDocumentation(app, { title: 'Atoll API', documentOf: () => openApiDocument(app) });
  const hasConsole = serveConsole(instance, options.consoleFolder);
  if (!hasConsole) instance.get('/', { config: { public: true } }, (_request, reply) => reply.redirect('/api/docs'));
  await app.init();
  await instance.ready();
  return app;
}
