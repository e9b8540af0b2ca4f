import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import locales from '@react-aria/optimize-locales-plugin';
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const outDir = join(import.meta.dirname, '../../dist/apps/console/web');

/** Beside each file of some size its compressed forms, so that the gateway compresses nothing while it answers. */
function precompress(): Plugin {
  return {
    name: 'precompress',
    closeBundle() {
      const assets = join(outDir, 'assets');
      if (!existsSync(assets)) return;
      for (const file of readdirSync(assets)) {
        if (!/\.(?:js|css|svg)$/.test(file)) continue;
        const content = readFileSync(join(assets, file));
        if (content.length < 1024) continue;
        writeFileSync(join(assets, `${file}.gz`), gzipSync(content, { level: 9 }));
        writeFileSync(
          join(assets, `${file}.br`),
          brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
        );
      }
    },
  };
}

/** The list of the console's addresses, for the gateway, which answers them with the page. */
function topLevelPaths(): Plugin {
  return {
    name: 'top-level-paths',
    generateBundle() {
      const source = readFileSync(join(import.meta.dirname, 'top-level-paths.json'), 'utf8');
      this.emitFile({ type: 'asset', fileName: 'top-level-paths.json', source });
    },
  };
}

const config = defineConfig({
  root: import.meta.dirname,
  base: '/',
  plugins: [{ ...locales.vite({ locales: ['en-US'] }), enforce: 'pre' }, react(), topLevelPaths(), precompress()],
  resolve: {
    alias: {
      '@atoll/gpu': join(import.meta.dirname, '../../libs/gpu/src/index.ts'),
      '@atoll/service-names': join(import.meta.dirname, '../../libs/service-names/src/index.ts'),
      '@atoll/session-tab': join(import.meta.dirname, '../../libs/session-tab/src/index.ts'),
    },
  },
  build: {
    outDir,
    emptyOutDir: true,
    target: 'es2023',
    manifest: true,
    // Data URLs are for images alone; the Content-Security-Policy allows no other.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});

export { config as default };
