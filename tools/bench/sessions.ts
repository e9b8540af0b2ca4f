import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createApiKey } from '@atoll/api-keys';
import { freePort } from '@atoll/testing';
import { compare } from './measure.js';
import { openLoop, percentile } from './open-loop.js';
import { start, stop, stopAll, untilReady } from './processes.js';

/**
 * `npm run bench sessions`: what a call with a session costs beside one with a cached key of the same user, and what
 * others notice of 50 log-ins a second, in one process and over NATS.
 */
const password = 'correct horse battery staple';
const email = 'bench@example.com';
const logInsPerSecond = 50;
const seconds = 15;

async function post<Answer>(url: string, key: string | undefined, body: object): Promise<Answer> {
  const headers = { 'content-type': 'application/json', ...(key !== undefined && { authorization: `Bearer ${key}` }) };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as Answer;
}

/** Log-ins that are due every 20 ms, until told to stop; how many of them were refused. */
function floodOfLogIns(url: string): () => Promise<number> {
  const open: Promise<number>[] = [];
  const timer = setInterval(() => {
    const attempt = post(`${url}/api/user/login`, undefined, { email, password }).then(
      () => 0,
      () => 1,
    );
    open.push(attempt);
  }, 1000 / logInsPerSecond);
  return async () => {
    clearInterval(timer);
    return (await Promise.all(open)).reduce((sum, refused) => sum + refused, 0);
  };
}

async function measure(name: string, entry: string): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
  const [port, adminKey] = [await freePort(), createApiKey()];
  const url = `http://127.0.0.1:${port}`;
  const platform = start(entry, [], {
    PORT: String(port),
    ATOLL_DATA_DIR: dataDir,
    ATOLL_ADMIN_KEY: adminKey,
    ATOLL_LIMITS: 'off',
  });
  await untilReady(`${url}/readyz`);
  // The gateway may be ready before the service that knows the key.
  while (!(await fetch(`${url}/api/user/profile`, { headers: { authorization: `Bearer ${adminKey}` } })).ok)
    await delay(100);
  const team = { name: 'Bench', members: [{ email, name: 'Bench', role: 'team_owner' }] };
  await post(`${url}/api/team`, adminKey, team);
  const link = await post<{ url: string }>(`${url}/api/user/login-link`, adminKey, { email });
  await post(`${url}/api/user/link`, undefined, { token: link.url.split('#')[1], password });
  const { access_token } = await post<{ access_token: string }>(`${url}/api/user/login`, undefined, {
    email,
    password,
  });
  const { api_key } = await post<{ api_key: string }>(`${url}/api/user/api-key`, access_token, {});
  const target = (of: string, credential: string) => ({
    name: of,
    url: `${url}/api/user/profile`,
    headers: { authorization: `Bearer ${credential}` },
  });
  const cost = await compare(
    target('session', access_token),
    target('key', api_key),
    { connections: 16, seconds: 4 },
    6,
  );
  console.log(
    `${name}: ${cost.product.toFixed(0)} calls a second by session, ${cost.floor.toFixed(0)} by key, ratio ${cost.ratio.toFixed(3)}`,
  );
  const shot = () => ({ path: '/api/user/profile', headers: { authorization: `Bearer ${api_key}` } });
  const quiet = await openLoop(port, { perSecond: 50, seconds }, shot);
  const stopFlood = floodOfLogIns(url);
  const flooded = await openLoop(port, { perSecond: 50, seconds }, shot);
  const refused = await stopFlood();
  const [before, during] = [percentile(quiet.latenciesMs, 0.5), percentile(flooded.latenciesMs, 0.5)];
  console.log(
    `${name}: p50 of others ${before.toFixed(2)} ms, with ${logInsPerSecond} log-ins a second ${during.toFixed(2)} ms (${(during / before).toFixed(2)}); ` +
      `answers ${JSON.stringify(flooded.statuses)}; log-ins refused: ${refused} of ${logInsPerSecond * seconds}`,
  );
  await stop(platform);
  rmSync(dataDir, { recursive: true, force: true });
}

const only = process.argv[process.argv.indexOf('--only') + 1];
try {
  if (only !== 'services') await measure('one process', 'apps/platform/src/main.js');
  if (only !== 'one-process') await measure('over NATS', 'tools/start-services.js');
} finally {
  await stopAll();
}
