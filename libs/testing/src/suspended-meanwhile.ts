import { setTimeout as delay } from 'node:timers/promises';
import { takeTurn, type Transactions } from '@atoll/database';
import { errorOf } from './error-of.js';

/**
 * Makes a call that is let in, has the team suspended in the service's own table while the call waits for the turn of
 * the team (`TeamGate.holdOpen`), and lifts the suspension after it. Returns the code that the call was refused with,
 * and `taken` where it gave something.
 */
export async function codeWhenSuspendedMeanwhile(
  transactions: Transactions,
  teamId: string,
  call: () => Promise<unknown>,
): Promise<string> {
  const suspend = (isSuspended: boolean, meanwhile: () => Promise<void>) =>
    transactions.run(async (manager) => {
      await takeTurn(manager, `team ${teamId}`);
      await manager.query('UPDATE team SET is_suspended = $2 WHERE id = $1', [teamId, isSuspended]);
      await meanwhile();
    });
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'`;
  const isWaiting = async () => (await transactions.run((manager) => manager.query<object[]>(waiting))).length > 0;
  let told: Promise<string> | undefined;
  let hasAnswered = false;
  await suspend(true, async () => {
    told = errorOf(call())
      .then(({ code }) => code)
      .catch(() => 'taken')
      .finally(() => (hasAnswered = true));
    while (!hasAnswered && !(await isWaiting())) await delay(5);
  });
  const code = (await told) ?? '';
  await suspend(false, () => Promise.resolve());
  return code;
}
