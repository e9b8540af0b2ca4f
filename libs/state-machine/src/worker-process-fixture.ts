import { setTimeout as delay } from 'node:timers/promises';
import { Harbour } from './berth-fixture.js';

/**
 * A worker in a process of its own, to be killed and frozen: `node worker-process-fixture.ts <url> <name> <behaviour>`.
 * It says on its standard output what it is about to do.
 */
const [, , url = '', name = '', behaviour = ''] = process.argv;
const say = (line: string) => process.stdout.write(`${line}\n`);
const harbour = await Harbour.join(url, { backgroundPoolSize: 2 });

/** How often a ship was dredged. A query that was in flight while the process was frozen times out, and is asked again. */
const deeds = (ship: string) =>
  harbour.dataSource.query<object[]>('SELECT FROM deed WHERE ship = $1', [ship]).then(
    (all) => all.length,
    () => 0,
  );
const act = (ship: string) => harbour.dataSource.query('INSERT INTO deed VALUES ($1, $2)', [ship, name]);

harbour.machine.does.dredging = async ({ ship }, context) => {
  say(`dredging ${ship}`);
  if (behaviour === 'hang') await new Promise(() => undefined);
  // Until another worker has done it: which that can only while this one is frozen.
  while (behaviour === 'freeze in a step' && ship === 'Fram' && (await deeds(ship)) === 0) await delay(20);
  if (behaviour === 'random') await delay(Math.random() * 30);
  if (context.signal.aborted) {
    say(`aborted ${ship}`);
    throw new Error('aborted');
  }
  await act(ship);
  return { event: 'DREDGED' };
};
harbour.machine.onEntered = async ({ ship, state }) => {
  if (state !== 'in_use' || behaviour !== 'freeze while applying') return;
  say(`applying ${ship}`);
  const sinceMs = performance.now();
  for (let lastMs = sinceMs; performance.now() - lastMs < 2_500; await delay(20)) lastMs = performance.now();
  say(`resumed ${ship}`);
};
// On a busy machine a step may take longer than the usual limit until its process is frozen.
harbour.worker({ service: name, pollMs: 50, stepMs: 60_000 }).start();
say('ready');
