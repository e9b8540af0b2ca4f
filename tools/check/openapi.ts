import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import spectralCore from '@stoplight/spectral-core';
import spectralRulesets from '@stoplight/spectral-rulesets';
import { InProcessBus, RpcModule } from '@atoll/rpc';
import { createLogger, createMetrics } from '@atoll/service';

interface Gateway {
  inject(request: { method: string; url: string }): Promise<{ payload: string }>;
  close(): Promise<void>;
}

/** The OpenAPI document as the gateway serves it. */
async function servedDocument(): Promise<string> {
  const built = (await import(pathToFileURL(resolve('dist/apps/gateway/src/create-gateway.js')).href)) as {
    createGateway: (options: object) => Promise<Gateway>;
  };
  const gateway = await built.createGateway({
    rpc: RpcModule.forMemory({ bus: new InProcessBus() }),
    keyPepper: 'a pepper for the check of OpenAPI',
    logger: createLogger({ service: 'gateway', level: 'silent' }),
    metrics: createMetrics('gateway'),
  });
  const { payload } = await gateway.inject({ method: 'GET', url: '/api/openapi.json' });
  await gateway.close();
  return payload;
}

interface Finding {
  rule: string;
  message: string;
  /** The keys that lead to the place, from the root of the document. */
  place: readonly string[];
}

async function findingsOfRedocly(document: string): Promise<Finding[]> {
  const config = await createConfig({ extends: ['recommended'] });
  const problems = await lintFromString({ source: document, absoluteRef: 'openapi.json', config });
  return problems.map(({ ruleId, message, location: [location] }) => ({
    rule: `redocly ${ruleId}`,
    message,
    place: (location?.pointer ?? '')
      .split('/')
      .slice(1)
      .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~')),
  }));
}

type RulesetFunction = (
  target: unknown,
  options: unknown,
  context: { path: (string | number)[] },
) => unknown[] | undefined;

/**
 * Spectral's rules of examples, each of which compiles the schema beside the example. The same error stands in hundreds
 * of answers: what is right once is right wherever it stands again, among requests or among answers (the two differ in
 * what is required of read-only properties).
 */
function exampleRules(): Record<string, unknown> {
  const right = new Set<string>();
  const once =
    (check: RulesetFunction): RulesetFunction =>
    (target, options, context) => {
      const sides = ['requestBody', 'responses'].map((side) => context.path.includes(side));
      const text = JSON.stringify([target, options, sides]);
      if (right.has(text)) return undefined;
      const findings = check(target, options, context);
      if (!findings?.length) right.add(text);
      return findings;
    };
  const rules = spectralRulesets.oas.rules as unknown as Record<string, { then: { function: RulesetFunction } }>;
  return Object.fromEntries(
    ['oas3-valid-media-example', 'oas3-valid-schema-example'].map((name) => {
      const rule = rules[name];
      if (!rule) throw new Error(`Spectral has no rule ${name}.`);
      return [name, { ...rule, then: { ...rule.then, function: once(rule.then.function) } }];
    }),
  );
}

async function findingsOfSpectral(document: string): Promise<Finding[]> {
  const linter = new spectralCore.Spectral();
  linter.setRuleset({ extends: [spectralRulesets.oas], rules: exampleRules() } as Parameters<
    typeof linter.setRuleset
  >[0]);
  const problems = await linter.run(document);
  return problems.map(({ code, message, path }) => ({ rule: `spectral ${code}`, message, place: path.map(String) }));
}

/** The paths that are documented as removed: they have no success, and may look like one that is served. */
function removedPathsOf(document: string): ReadonlySet<string> {
  const { paths } = JSON.parse(document) as { paths: Record<string, { get?: { tags?: string[] } }> };
  return new Set(Object.keys(paths).filter((path) => paths[path]?.get?.tags?.includes('Removed')));
}

/**
 * Paths whose first parameter cannot be the word that stands in its place in another path: a UUID, a number, and the
 * name of a pod, which ends in a hyphen and five letters.
 */
const unambiguous = [
  '/api/baremetal/{instance_id}/credentials',
  '/api/gpuaas/{gpuaas_id}/cluster',
  '/api/pods/{pod_name}/terminal',
];

const document = await servedDocument();
const removed = removedPathsOf(document);
for (const { rule, message, place } of [
  ...(await findingsOfRedocly(document)),
  ...(await findingsOfSpectral(document)),
]) {
  const [section, path = ''] = place;
  if (section === 'paths' && removed.has(path)) continue;
  if (
    rule === 'redocly no-ambiguous-paths' &&
    unambiguous.some((known) => path === known || message.includes(`\`${known}\``))
  )
    continue;
  console.log(`${rule}: ${message} (${place.join(' > ')})`);
  process.exitCode = 1;
}
