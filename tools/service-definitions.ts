import { existsSync, globSync } from 'node:fs';
import type { ServiceDefinition } from '@atoll/service';

/**
 * The services that were built: what each `apps/<name>/src/service.ts` exports as `service`, in the order of their
 * names. Beside the sources, only those that still have one: a build leaves what an earlier one wrote.
 */
export async function serviceDefinitions(): Promise<ServiceDefinition[]> {
  const dist = new URL('..', import.meta.url);
  const sources = new URL('..', dist);
  const hasSources = existsSync(new URL('apps', sources));
  const files = globSync('apps/*/src/service.js', { cwd: dist })
    .filter((file) => !hasSources || existsSync(new URL(file.replace(/\.js$/, '.ts'), sources)))
    .toSorted();
  const modules = (await Promise.all(files.map((file) => import(new URL(file, dist).href)))) as {
    service: ServiceDefinition;
  }[];
  return modules.map(({ service }) => service);
}

/** What the gateway reads from its environment, in a process of its own. */
export async function gatewaySettings(): Promise<readonly Pick<ServiceDefinition, 'settings'>[]> {
  const { href } = new URL('../apps/gateway/src/env.js', import.meta.url);
  const { gatewaySettings: settings } = (await import(href)) as {
    gatewaySettings: readonly Pick<ServiceDefinition, 'settings'>[];
  };
  return settings;
}
