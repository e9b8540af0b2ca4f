import { readFileSync } from 'node:fs';
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

/** A finding as docs/openapi.md lists it: the rule, and the path or paths that it is about. */
function entryOf({ rule, message, place: [section, path = ''] }: Finding): string | undefined {
  if (section !== 'paths') return undefined;
  const paths = rule.endsWith('no-ambiguous-paths')
    ? [...message.matchAll(/`([^`]+)`/g)].map(([, each]) => each)
    : [path];
  return [rule, ...paths.toSorted()].join(' ');
}

const document = await servedDocument();
const [, list = ''] = /^```text\n(.*?)^```/ms.exec(readFileSync('docs/openapi.md', 'utf8')) ?? [];
const left = new Set(list.trim().split('\n'));
for (const finding of [...(await findingsOfRedocly(document)), ...(await findingsOfSpectral(document))]) {
  if (left.delete(entryOf(finding) ?? '')) continue;
  console.log(`${finding.rule}: ${finding.message} (${finding.place.join(' > ')})`);
  process.exitCode = 1;
}
for (const entry of left) {
  console.log(`docs/openapi.md lists what is not found: ${entry}`);
  process.exitCode = 1;
}
