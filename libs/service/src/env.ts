import 'reflect-metadata';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import type { Wire } from '@atoll/contracts';

/**
 * Reads the environment into a class whose property names are the variables' names, with its defaults and its validators.
 * An empty variable counts as absent, as compose files produce them. Throws one Error that lists every fault at once, without
 * the faulty values: they may be secrets.
 */
export function loadEnv<Env extends object>(type: Wire<Env>, source: NodeJS.ProcessEnv = process.env): Env {
  const present = Object.fromEntries(Object.entries(source).filter(([, value]) => value !== undefined && value !== ''));
  const env = plainToInstance(type, { ...new type(), ...pick(present, type) }, { enableImplicitConversion: false });
  const faults = validateSync(env, { stopAtFirstError: true, validationError: { target: false, value: false } });
  if (faults.length > 0) {
    const lines = faults.flatMap((fault) => Object.values(fault.constraints ?? {}).map((message) => `  ${message}`));
    throw new Error(`The environment is not usable:\n${lines.join('\n')}`);
  }
  return env;
}

/** Only the variables that the class documents, so that one class never sees another's. */
function pick(source: Record<string, unknown>, type: Wire): Record<string, unknown> {
  const names = Object.getOwnPropertyNames(new type());
  return Object.fromEntries(names.filter((name) => name in source).map((name) => [name, source[name]]));
}
