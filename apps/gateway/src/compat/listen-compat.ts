import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createCompat } from './create-compat.js';

/** Where the compatibility mount listens. */
export interface CompatAddress {
  port: number;
  host: string;
}

/**
 * Opens the compatibility mount of a gateway on a port of its own. It is closed together with the gateway: what stands
 * behind both is the gateway's.
 */
export async function listenCompat(
  gateway: NestFastifyApplication,
  { port, host }: CompatAddress,
): Promise<NestFastifyApplication> {
  const compat = await createCompat(gateway);
  await compat.listen(port, host);
  return compat;
}
