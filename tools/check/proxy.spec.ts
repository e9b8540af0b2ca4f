import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { parse } from 'yaml';

/** What nginx does with paths that begin like this, as `docker-compose.yml` configures it. */
function locationOf(path: string): string | undefined {
  const { configs } = parse(readFileSync('docker-compose.yml', 'utf8')) as { configs: { proxy: { content: string } } };
  const [, rules] = new RegExp(`location ${path} \\{([^}]*)\\}`).exec(configs.proxy.content) ?? [];
  return rules;
}

it('asks another gateway for a file of the console that one lacks: during an upgrade each has its own', () => {
  expect(locationOf('/assets/')).toMatch(/proxy_pass http:\/\/gateways;\s+proxy_next_upstream [^;]*\bhttp_404;/);
  // Of any other request a 404 is the answer.
  expect(locationOf('/')).not.toContain('proxy_next_upstream');
});
