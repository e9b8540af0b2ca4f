import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript' };

/** An address with a page of Vite and nothing else, built and served compressed, as the console is; and its end. */
export async function serveEmptyPage(): Promise<{ url: string; stop: () => Promise<void> }> {
  const root = mkdtempSync(join(tmpdir(), 'atoll-empty-page-'));
  writeFileSync(
    join(root, 'index.html'),
    '<!doctype html><html lang="en"><title>x</title><script type="module" src="./main.js"></script></html>',
  );
  writeFileSync(
    join(root, 'main.js'),
    `document.body.append(Object.assign(document.createElement('h1'), { textContent: 'Empty' }));`,
  );
  const { build } = await import('vite');
  await build({ root, configFile: false, logLevel: 'error' });
  const server = createServer((request, response) => {
    const path = request.url === '/' ? '/index.html' : (request.url ?? '');
    const type = types[extname(path)];
    if (type === undefined) return void response.writeHead(404).end();
    response
      .writeHead(200, { 'content-type': type, 'content-encoding': 'gzip' })
      .end(gzipSync(readFileSync(join(root, 'dist', path))));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
      rmSync(root, { recursive: true });
    },
  };
}
