import { createLogger } from './logger.js';
import { onShutdown } from './shutdown.js';

/** A process that says that it is there, and nothing more until a signal ends it. */
const logger = createLogger({ service: 'teams' });
const nothingToDo = setInterval(() => undefined, 60_000);
onShutdown(logger, () => Promise.resolve(clearInterval(nothingToDo)));
logger.info('there');
