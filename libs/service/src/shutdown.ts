import type { Logger } from 'pino';
import { onStopSignals } from './stop-signals.js';

/** Longer than requests and events in hand may take, shorter than the 30 s after which a container is killed. */
const patienceMs = 25_000;

/**
 * Runs `stop` once, at the first SIGTERM or SIGINT, then ends the process with code 0. A signal a second later or more,
 * a stop that fails, or one that takes longer than 25 seconds ends it with code 1.
 */
export function onShutdown(logger: Logger, stop: () => Promise<unknown>): void {
  const end = (signal: NodeJS.Signals) => {
    logger.info({ signal }, 'stopping');
    setTimeout(() => {
      logger.error('did not stop in time');
      process.exit(1);
    }, patienceMs).unref();
    stop().then(
      () => {
        logger.info('stopped');
        process.exit(0);
      },
      (error: unknown) => {
        logger.error({ err: error }, 'could not stop cleanly');
        process.exit(1);
      },
    );
  };
  onStopSignals(end, () => process.exit(1));
}
