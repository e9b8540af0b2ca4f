import { startSshHost } from './ssh-host.js';

/** A process that starts a host, tells its port, and lives on. */
const { port } = await startSshHost();
process.stdout.write(`${port}\n`);
setInterval(() => undefined, 60_000);
