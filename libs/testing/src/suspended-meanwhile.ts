import { takeTurn, Transactions } from '@atoll/database';
import { errorOf } from './error-of.js';
import { untilLockWaits } from './lock-waits.js';
import type { BareServiceUnderTest } from './service-under-test.js';

/**
 * Makes a call that is let in, has the team suspended in the service's own table while the call waits for the turn of
 * the team (`TeamGate.holdOpen`), and lifts the suspension after it. Returns the code that the call was refused with,
 * and `taken` where it gave something.
 */
export async function codeWhenSuspendedMeanwhile(
  service: BareServiceUnderTest,
  teamId: string,
  call: () => Promise<unknown>,
): Promise<string> {
  const suspend = (isSuspended: boolean, meanwhile: () => Promise<void>) =>
    service.get(Transactions).run(async (manager) => {
      await takeTurn(manager, `team ${teamId}`);
      await manager.query('UPDATE team SET is_suspended = $2 WHERE id = $1', [teamId, isSuspended]);
      await meanwhile();
    });
  let told: Promise<string> | undefined;
  await suspend(true, async () => {
    told = errorOf(call())
      .then(({ code }) => code)
      .catch(() => 'taken');
    await untilLockWaits(service, { text: 'advisory', unless: told });
  });
  const code = (await told) ?? '';
  await suspend(false, () => Promise.resolve());
  return code;
}
