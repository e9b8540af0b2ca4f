import { createLogger } from './logger.js';
import { onShutdown } from './shutdown.js';

/** A process that says that it is there, and nothing more until a signal asks it or ends it. */
const logger = createLogger({ service: 'teams' });
const nothingToDo = setInterval(() => undefined, 60_000);
onShutdown(logger, () => Promise.resolve(clearInterval(nothingToDo)));
process.on('SIGUSR2', () => logger.info('still there'));
logger.info('there');
