import { freePort, ownPorts } from './free-port.js';

/** A process that asks for ports, tells them, and lives on. */
for (const from of [4_242, ...Array.from({ length: 19 }, () => undefined)])
  process.stdout.write(`${await freePort(from)}\n`);
for (let times = 0; times < 2; times += 1) process.stdout.write(`${ownPorts(42)}\n`);
setInterval(() => undefined, 60_000);
