import type { Wire } from '@atoll/contracts';
import { messageOf } from '@atoll/errors';
import { InvalidEnvironment, readEnv } from './env.js';
import type { ServiceDefinition } from './service-definition.js';

type Configurable = Pick<ServiceDefinition, 'settings' | 'checks'>;
type SettingsOf<All extends readonly Configurable[]> = {
  [At in keyof All]: All[At] extends { readonly settings: Wire<infer Settings> } ? Settings : never;
};

/**
 * The settings of all that runs in a process, from the environment, checked in full: called before anything is started,
 * so that nothing has to be undone. Throws `InvalidEnvironment` with the faults of all of them.
 */
export async function readSettings<const All extends readonly Configurable[]>(
  all: All,
  source: NodeJS.ProcessEnv = process.env,
): Promise<SettingsOf<All>> {
  const faults = new Map<string, string>();
  const settings = await Promise.all(all.map((each) => readOne(each, source, faults)));
  if (faults.size > 0) throw new InvalidEnvironment(faults);
  return settings as SettingsOf<All>;
}

/**
 * Adds what is wrong to the faults: of a variable that several read, what the first of them says. Checks see the
 * default of what is faulty by itself.
 */
async function readOne(
  { settings: type, checks }: Configurable,
  source: NodeJS.ProcessEnv,
  faults: Map<string, string>,
): Promise<object> {
  const { env, faults: own } = readEnv(type, source);
  for (const [variable, fault] of own) if (!faults.has(variable)) faults.set(variable, fault);
  const checked = await Promise.allSettled((checks?.(env) ?? []).map((check) => Promise.resolve().then(check)));
  for (const outcome of checked) {
    if (outcome.status === 'rejected') faults.set(messageOf(outcome.reason), messageOf(outcome.reason));
  }
  return env;
}
