import { createLogger, loadEnv, onShutdown, version } from '@atoll/service';
import { banner } from './banner.js';
import { PlatformEnv } from './env.js';
import { startPlatform } from './start-platform.js';

try {
  const env = loadEnv(PlatformEnv);
  const logger = createLogger({ service: 'atoll', level: env.ATOLL_LOG_LEVEL });
  logger.info({ version }, 'starting');
  const platform = await startPlatform(env, logger);
  onShutdown(logger, () => platform.stop());
  logger.info({ url: platform.url }, 'ready');
  console.log(banner({ ...platform, readyAfterMs: performance.now() }));
} catch (error) {
  console.error(`Atoll cannot start: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
