import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { startGateway, type GatewayUnderTest } from '../../testing/gateway-fixture.js';
import { createCompat } from '../create-compat.js';

/** A gateway and its compatibility mount that listen, for what goes over connections. */
export interface Listening {
  gateway: GatewayUnderTest;
  compat: NestFastifyApplication;
  close(): Promise<unknown>;
}

export async function startListening(): Promise<Listening> {
  const gateway = await startGateway();
  const compat = await createCompat(gateway.app);
  for (const app of [gateway.app, compat]) await app.listen(0, '127.0.0.1');
  return { gateway, compat, close: () => Promise.all([compat.close(), gateway.close()]) };
}
