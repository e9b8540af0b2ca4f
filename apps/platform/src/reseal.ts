import { rowsOf } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import { resealColumn, SealKeys } from '@atoll/service';
import { besidePlatform } from './beside-platform.js';
import { services } from './services.js';

class ResealSettings {
  @SealKeys()
  sealKeys: string = '';
}

/**
 * `npm run reseal`: seals under the first key of ATOLL_SEAL_KEYS what another one sealed, and opens all other values, a
 * line for each column. Says at its end whether the other keys may be taken away; where a value is left that no key
 * opens, it names its row and ends with code 1.
 */
await besidePlatform(ResealSettings, async ({ connectAll, settings }) => {
  const sealer = new Sealer(settings.sealKeys);
  let left = 0;
  const sealing = services.filter(({ sealed = [] }) => sealed.length > 0);
  for (const [{ name, sealed = [] }, dataSource] of await connectAll(sealing)) {
    const rows = rowsOf(dataSource);
    for (const place of sealed) {
      const { table, column, resealed, unopened } = await resealColumn(place, sealer, rows);
      console.log(`${name}: ${table}.${column}: ${resealed} sealed again`);
      for (const { row, reason } of unopened) console.error(`${name}: ${table}.${column} of ${row}: ${reason}`);
      left += unopened.length;
    }
  }
  if (left === 0) return console.log('Everything is sealed under the first key. The others may be taken away.');
  console.error(
    `${left} ${left === 1 ? 'value is' : 'values are'} left that no key of ATOLL_SEAL_KEYS opens. Keep the other keys, and add or correct the keys that these need.`,
  );
  process.exitCode = 1;
});
