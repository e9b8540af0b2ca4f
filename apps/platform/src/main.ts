import { messageOf, rootOf } from '@atoll/errors';
import type { Logger } from 'pino';
import { createLogger, onShutdown, version } from '@atoll/service';
import { banner } from './banner.js';
import { clusterInUse } from './cluster-in-use.js';
import { demoText } from './demo/demo-text.js';
import { loadDemo } from './demo/load-demo.js';
import { readPlatform } from './read-platform.js';
import { startPlatform, type RunningPlatform } from './start-platform.js';

const options = process.argv.slice(2);

try {
  const unknown = options.find((option) => option !== '--demo');
  if (unknown !== undefined) throw new Error(`There is no option ${unknown}. Usage: npm start [-- --demo]`);
  const settings = await readPlatform();
  const logger = createLogger({ service: 'atoll', level: settings.env.ATOLL_LOG_LEVEL });
  logger.info({ version }, 'starting');
  const stopping = new AbortController();
  const starting = startPlatform(settings, logger, stopping.signal);
  // A signal that comes during the start ends the platform as soon as it can be ended cleanly.
  onShutdown(logger, async () => {
    stopping.abort();
    await (await starting)?.stop();
  });
  const platform = await starting;
  if (platform) await show(platform, logger);
} catch (error) {
  console.error(`Atoll cannot start: ${messageOf(rootOf(error))}`);
  process.exit(1);
}

async function show(platform: RunningPlatform, logger: Logger): Promise<void> {
  logger.info({ url: platform.url }, 'ready');
  const readyAfterMs = performance.now();
  console.log(banner({ ...platform, readyAfterMs, cluster: await clusterInUse(process.env) }));
  if (options.includes('--demo')) await showDemo(platform);
}

/** `npm start -- --demo`. A platform that cannot be filled goes on as it is. */
async function showDemo({ url, adminKey = process.env.ATOLL_ADMIN_KEY }: RunningPlatform): Promise<void> {
  try {
    if (!adminKey)
      throw new Error('the admin key is known only at the first start of a data folder; set ATOLL_ADMIN_KEY');
    console.log(demoText(await loadDemo({ url, adminKey })));
  } catch (error) {
    console.error(`The demo was not loaded: ${messageOf(error)}`);
  }
}
