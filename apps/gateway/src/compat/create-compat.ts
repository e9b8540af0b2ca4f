import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { NestLogger } from '@atoll/service';
import { createAdapter } from '../adapter.js';
import { GatewaySettings } from '../gateway-options.js';
import { Draining } from '../health/draining.js';
import { serveDocumentation } from '../openapi/documentation.js';
import { FairRpc } from '../requests/fair-rpc.js';
import { hookPartsOf, installHooks, type HookParts } from '../requests/hooks.js';
import { CompatModule } from './compat.module.js';
import { compatDocument } from './http/document.js';
import { keepBodies } from './http/old-bodies.js';
import { OldErrorFilter, oldUnreadForm } from './http/old-error.js';
import { refuseNotServed } from './http/not-served.js';

/**
 * The compatibility mount of a gateway, initialised and not listening: the same admission, credential cache, buckets,
 * deny by default and record as the gateway, whose own they are; other routes, bodies and errors.
 */
export async function createCompat(gateway: NestFastifyApplication): Promise<NestFastifyApplication> {
  const settings = gateway.get(GatewaySettings);
  const partsOf = (): HookParts => ({
    ...hookPartsOf(gateway),
    draining: app.get(Draining),
    filter: app.get(OldErrorFilter),
    refuseUnmatched: refuseNotServed,
    unreadForm: oldUnreadForm,
  });
  const adapter = createAdapter(partsOf);
  const app = await NestFactory.create<NestFastifyApplication>(
    CompatModule.register({ settings, rpc: gateway.get(FairRpc) }),
    adapter,
    {
      abortOnError: false,
      bodyParser: false,
      logger: new NestLogger(settings.logger),
    },
  );
  app.setGlobalPrefix('api');
  app.useGlobalFilters(app.get(OldErrorFilter));
  const instance = adapter.getInstance();
  keepBodies(instance);
  installHooks(instance, partsOf());
  serveDocumentation(app, { title: 'Atoll, compatibility mount', documentOf: () => compatDocument(app) });
  await app.init();
  await instance.ready();
  return app;
}
