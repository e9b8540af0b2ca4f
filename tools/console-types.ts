import { mkdir, writeFile } from 'node:fs/promises';
import openapiTypes, { astToString, type OpenAPI3 } from 'openapi-typescript';
import { InProcessBus, RpcModule } from '@atoll/rpc';
import { createLogger, createMetrics } from '@atoll/service';

/** The part of the gateway that is used here. It is imported from the build: tools import no app. */
interface BuiltGateway {
  createGateway(options: object): Promise<{
    inject(request: { url: string }): Promise<{ json(): unknown }>;
    close(): Promise<void>;
  }>;
}

/** The OpenAPI document of the built gateway, which no service stands behind. */
async function documentOfBuild(): Promise<OpenAPI3> {
  const built = (await import(new URL('../apps/gateway/src/create-gateway.js', import.meta.url).href)) as BuiltGateway;
  const gateway = await built.createGateway({
    rpc: RpcModule.forMemory({ bus: new InProcessBus() }),
    keyPepper: 'no key is looked up here',
    logger: createLogger({ service: 'console-types', level: 'error' }),
    metrics: createMetrics('console-types'),
  });
  try {
    return (await gateway.inject({ url: '/api/openapi.json' })).json() as OpenAPI3;
  } finally {
    await gateway.close();
  }
}

/**
 * Writes the types of the API, as the console uses them, to `apps/console/src/api/generated/`: types only, none of it
 * reaches the browser. They are made of the document that the gateway serves and are in no commit, so a page that uses
 * what the API does not have does not compile.
 */
const target = new URL('../../apps/console/src/api/generated/openapi.ts', import.meta.url);
const types = astToString(await openapiTypes(await documentOfBuild(), { alphabetize: true, rootTypes: false }));
await mkdir(new URL('.', target), { recursive: true });
await writeFile(target, types);
