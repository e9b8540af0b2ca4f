import { globSync } from 'node:fs';
import type { ServiceDefinition } from '@atoll/service';

/** The services that were built: what each `apps/<name>/src/service.ts` exports as `service`, in the order of their names. */
export async function serviceDefinitions(): Promise<ServiceDefinition[]> {
  const dist = new URL('..', import.meta.url);
  const files = globSync('apps/*/src/service.js', { cwd: dist }).toSorted();
  const modules = (await Promise.all(files.map((file) => import(new URL(file, dist).href)))) as { service: ServiceDefinition }[];
  return modules.map(({ service }) => service);
}
