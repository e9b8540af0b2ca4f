import { setTimeout as delay } from 'node:timers/promises';
import { Events } from '@atoll/events';
import { carriesNothing, startBenchService } from './events-service.js';

/** A replica of the bench's service that relays what the other commits. Prints `ready` when it does. */
const app = await startBenchService('notes', carriesNothing, process.env.DATABASE_URL ?? '');
process.once('SIGTERM', () => void app.close().then(() => process.exit(0)));
while (!app.get(Events).status().ready) await delay(20);
console.log('ready');
