import { existsSync, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { transformSync, type Options } from '@swc/core';

/**
 * `node --import` this, and Node.js runs TypeScript of this repository as Jest does, decorators and `@atoll/*`
 * included: for specs that need a process of their own, `spawnTypescript`.
 */
const root = new URL('../../../', import.meta.url);
const { jsc } = JSON.parse(readFileSync(new URL('.swcrc', root), 'utf8')) as { jsc: NonNullable<Options['jsc']> };
delete jsc.paths;
delete jsc.baseUrl;

registerHooks({
  resolve(specifier, context, next) {
    const [, lib, door = ''] = /^@atoll\/([a-z-]+)(\/[a-z-]+)?$/.exec(specifier) ?? [];
    if (lib !== undefined) return next(new URL(`libs/${lib}/src${door}/index.ts`, root).href, context);
    if (/^\.{1,2}\/.*\.js$/.test(specifier) && context.parentURL?.endsWith('.ts')) {
      const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
      if (existsSync(source)) return next(source.href, context);
    }
    return next(specifier, context);
  },
  load(url, context, next) {
    if (!url.endsWith('.ts') || !url.startsWith(root.href)) return next(url, context);
    const filename = fileURLToPath(url);
    const { code } = transformSync(readFileSync(filename, 'utf8'), {
      jsc,
      filename,
      swcrc: false,
      sourceMaps: 'inline',
      module: { type: 'es6' },
    });
    return { format: 'module', source: code, shortCircuit: true };
  },
});
