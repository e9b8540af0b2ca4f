import { setTimeout as delay } from 'node:timers/promises';
import { Harbour } from './berth-fixture.js';
import { ClaimKeeper } from './claim-keeper.js';

/**
 * A worker in a process of its own, to be killed and frozen: `node worker-process-fixture.ts <url> <name> [killed]`. It
 * says on its standard output what it is about to do. It dredges the Fram until another has done so, is at the Maud,
 * once that is in use, until then, and is at the Belgica for ever. With `killed` it kills itself at one of its first
 * steps.
 */
const [, , url = '', name = '', mode = ''] = process.argv;
const isKilled = mode === 'killed';
const say = (line: string) => process.stdout.write(`${line}\n`);
const harbour = await Harbour.join(url, { backgroundPoolSize: 2 });

/**
 * Resolves when another worker has dredged a ship, which that can only while this one is frozen. A query that was in
 * flight then times out, and is asked again.
 */
async function untilDoneByAnother(ship: string): Promise<void> {
  const done = () =>
    harbour.dataSource
      .query<object[]>('SELECT FROM deed WHERE ship = $1 AND by_whom <> $2', [ship, name])
      .catch(() => []);
  while ((await done()).length === 0) await delay(20);
}
const act = (ship: string) => harbour.dataSource.query('INSERT INTO deed VALUES ($1, $2)', [ship, name]);

const lastStep = 5 + Math.floor(Math.random() * 5);
let steps = 0;

harbour.machine.does.dredging = async ({ ship }, context) => {
  say(`dredging ${ship}`);
  steps += 1;
  // By itself: whoever watches it could be too late, on a busy machine, to find it at anything.
  if (isKilled && steps === lastStep) process.kill(process.pid, 'SIGKILL');
  if (ship === 'Belgica') await new Promise(() => undefined);
  if (ship === 'Fram') await untilDoneByAnother(ship);
  if (isKilled) await delay(Math.random() * 30);
  if (context.signal.aborted) {
    say(`aborted ${ship}`);
    throw new Error('aborted');
  }
  await act(ship);
  return { event: 'DREDGED' };
};
harbour.machine.onEntered = async ({ ship, state }) => {
  if (state !== 'in_use' || ship !== 'Maud') return;
  say(`applying ${ship}`);
  await untilDoneByAnother(ship);
  say(`resumed ${ship}`);
};
// On a busy machine a step may take longer than the usual limit until its process is frozen.
harbour
  .worker({ service: name, pollMs: 50, stepMs: 60_000 }, harbour.machine, new ClaimKeeper(harbour.dataSource))
  .start();
say('ready');
