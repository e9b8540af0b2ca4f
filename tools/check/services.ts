import { globSync, readFileSync } from 'node:fs';
import { ServiceEnv, variablesOf, type ServiceDefinition } from '@atoll/service';
import { platformServices } from '@atoll/service-names';
import { parse } from 'yaml';
import { natsConfiguration } from '../nats-users.js';
import { missingConnections } from './connections.js';
import { gatewayDefinition, serviceDefinitions } from '../service-definitions.js';

/**
 * What differs between a laptop and a container, and the image sets: nothing an operator would pass through compose.
 */
const ofTheImage = ['HOST', 'PORT', 'HEALTH_PORT'];

export interface Container {
  command?: string[];
  environment?: Record<string, string | null>;
}

/**
 * What is missing where one of these processes is to be found: their stanza, their command, each of their variables
 * there and in the documentation.
 */
export function missingPieces(
  processes: readonly { name: string; variables: readonly string[] }[],
  containers: Record<string, Container>,
  documentation: string,
): string[] {
  return processes.flatMap(({ name, variables }) => {
    const container = containers[name];
    if (!container) return [`docker-compose.yml: ${name} has no stanza`];
    const main = `dist/apps/${name}/src/main.js`;
    const passed = Object.keys(container.environment ?? {});
    return [
      ...(container.command?.includes(main) ? [] : [`docker-compose.yml: the command of ${name} must run ${main}`]),
      ...variables
        .filter((variable) => !ofTheImage.includes(variable) && !passed.includes(variable))
        .map((variable) => `docker-compose.yml: ${name} is not passed ${variable}`),
      ...variables
        .filter((variable) => !documentation.includes(`\`${variable}\``))
        .map((variable) => `docs/operations.md: ${variable} of ${name} is not described`),
    ];
  });
}

/**
 * Processes whose password the container of NATS is not given, or that the commands at the top of the file, which make
 * one for each, leave out.
 */
export function missingPasswords(names: readonly string[], nats: Container | undefined, compose: string): string[] {
  const given = Object.keys(nats?.environment ?? {});
  const made = /ATOLL_NATS_PASSWORD_\{([A-Z_,]+)\}/.exec(compose)?.[1]?.split(',') ?? [];
  const variable = (name: string) => name.toUpperCase().replaceAll('-', '_');
  return names
    .map(variable)
    .flatMap((name) => [
      ...(given.includes(`ATOLL_NATS_PASSWORD_${name}`)
        ? []
        : [`docker-compose.yml: nats is not passed ATOLL_NATS_PASSWORD_${name}`]),
      ...(made.includes(name)
        ? []
        : [`docker-compose.yml: the commands at the top make no ATOLL_NATS_PASSWORD_${name}`]),
    ]);
}

/**
 * Variables that are declared in several places, by `Variable('…')` or by a property of that name: what they are could
 * then differ. `sources`: path → text.
 */
export function declaredAgain(sources: ReadonlyMap<string, string>): string[] {
  const declaration =
    /\bVariable\('([A-Z][A-Z0-9_]*)'\)|\bsetting\(\s*'([A-Z][A-Z0-9_]*)'|^ {2}([A-Z][A-Z0-9_]*): .* = /gm;
  const places = new Map<string, string[]>();
  for (const [path, text] of sources) {
    for (const [, ...names] of text.matchAll(declaration)) {
      const variable = names.find((name) => name !== undefined) ?? '';
      places.set(variable, [...(places.get(variable) ?? []), path]);
    }
  }
  return [...places]
    .filter(([, paths]) => paths.length > 1)
    .map(([variable, paths]) => `${variable} is declared more than once: ${paths.join(', ')}`);
}

/** A service that is not in the list of names: `npm start` does not run it, and its dead letters are not listed. */
export function missingNames(services: readonly string[], listed: readonly string[]): string[] {
  return services
    .filter((name) => !listed.includes(name))
    .map((name) => `libs/service-names/src/platform-services.ts: ${name} is missing`);
}

function settingsFiles(): string[] {
  return globSync('{apps,libs,tools}/**/*.ts', {
    exclude: ['**/*.spec.ts', '**/*.e2e-spec.ts', 'tools/bench/**', 'apps/e2e/**'],
  }).toSorted();
}

async function problems(): Promise<string[]> {
  const services = await serviceDefinitions();
  const compose = readFileSync('docker-compose.yml', 'utf8');
  const { services: containers } = parse(compose, { merge: true }) as {
    services: Record<string, Container>;
  };
  const documentation = readFileSync('docs/operations.md', 'utf8');
  const variables = (all: readonly Pick<ServiceDefinition, 'settings'>[]) => [
    ...new Set(all.flatMap(({ settings }) => [...variablesOf(settings).values()])),
  ];
  const processes = [
    { name: 'gateway', variables: variables((await gatewayDefinition()).gatewaySettings) },
    ...services.map((service) => ({ name: service.name, variables: variables([{ settings: ServiceEnv }, service]) })),
  ];
  const isNatsStale = readFileSync('deploy/nats.conf', 'utf8') !== (await natsConfiguration());
  return [
    ...(isNatsStale
      ? ['deploy/nats.conf: not what the contracts say; run npm run --silent nats-users > deploy/nats.conf']
      : []),
    ...declaredAgain(new Map(settingsFiles().map((path) => [path, readFileSync(path, 'utf8')]))),
    ...missingNames(
      services.map(({ name }) => name),
      platformServices,
    ),
    ...missingPasswords(
      processes.map(({ name }) => name),
      containers.nats,
      compose,
    ),
    ...missingPieces(processes, containers, documentation),
    ...missingConnections(
      services.map(({ name, database: { poolSize = 10, backgroundPoolSize = 0 } }) => ({
        name,
        connections: poolSize + backgroundPoolSize,
      })),
      containers.postgres?.command ?? [],
      compose,
      documentation,
    ),
  ];
}

if (import.meta.main) {
  const found = await problems();
  for (const problem of found) console.log(problem);
  process.exitCode = found.length ? 1 : 0;
}
