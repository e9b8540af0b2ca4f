import { DeadLetters } from '@atoll/events';
import { besidePlatform } from './beside-platform.js';
import { services } from './services.js';

/**
 * `npm run dead-letters`: the events whose effects failed for good, a line each; `npm run dead-letters -- retry SERVICE ID` has one handled again, which
 * happens in one transaction or not at all.
 */
const [action = 'list', service = '', id = ''] = process.argv.slice(2);

await besidePlatform(async (open) => {
  if (action === 'retry') {
    const app = await open(service);
    await app.get(DeadLetters, { strict: false }).retry(id);
    console.log('Handled.');
    return;
  }
  if (action !== 'list') throw new Error('say: npm run dead-letters, or npm run dead-letters -- retry SERVICE ID');
  for (const { name } of services) {
    const app = await open(name);
    const letters = await app.get(DeadLetters, { strict: false }).list();
    if (letters.length === 0) console.log(`${name}: none`);
    for (const letter of letters) {
      console.log(
        `${name} ${letter.id} ${letter.eventName} → ${letter.consumer}, ${letter.tries} tries, ${letter.lastFailedAt.toISOString()}: ${letter.lastError}`,
      );
    }
  }
});
