import { withClient } from './with-client.js';

/**
 * An empty database on the same server, or a copy of the one named; one of that name is dropped before. Gives back its
 * URL.
 */
export async function createDatabase(serverUrl: string, name: string, original?: string): Promise<string> {
  const like = original === undefined ? '' : ` TEMPLATE ${original} STRATEGY file_copy`;
  await runOn(serverUrl, `DROP DATABASE IF EXISTS ${name}`, `CREATE DATABASE ${name}${like}`);
  return urlOf(serverUrl, name);
}

export async function dropDatabase(serverUrl: string, name: string): Promise<void> {
  await runOn(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`);
}

export function urlOf(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

export function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

async function runOn(url: string, ...statements: string[]): Promise<void> {
  await withClient(url, async (client) => {
    for (const statement of statements) await client.query(statement);
  });
}
