import { startNats } from './nats-server.js';

/** A process that starts a server, tells its id, and lives on. */
const { pid } = await startNats();
process.stdout.write(`${pid}\n`);
setInterval(() => undefined, 60_000);
