import { loadEnv } from './env.js';
import type { ServiceDefinition } from './service-definition.js';

/**
 * The settings of a service from the environment, checked in full: called for every service of a process before
 * anything is started, so that nothing has to be undone. Throws an Error whose sentence names the variables at fault.
 */
export async function readSettings<Settings extends object>(
  { settings: type, check }: Pick<ServiceDefinition<Settings>, 'settings' | 'check'>,
  source: NodeJS.ProcessEnv = process.env,
): Promise<Settings> {
  const settings = loadEnv(type, source);
  await check?.(settings);
  return settings;
}
