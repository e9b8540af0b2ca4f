import { existsSync, globSync } from 'node:fs';
import type { HttpEnv, Listener, ServiceDefinition } from '@atoll/service';

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

/** What the gateway reads from its environment in a process of its own, and where it listens. */
export interface GatewayDefinition {
  /** `GatewayEnv` is the last. */
  readonly gatewaySettings: readonly Pick<ServiceDefinition, 'settings'>[];
  gatewayListeners(this: void, http: HttpEnv, gateway: unknown): Listener[];
}

export async function gatewayDefinition(): Promise<GatewayDefinition> {
  const { href } = new URL('../apps/gateway/src/env.js', import.meta.url);
  return (await import(href)) as GatewayDefinition;
}
