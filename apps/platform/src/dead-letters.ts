import { DeadLetterList } from '@atoll/events';
import { besidePlatform, NoSettings } from './beside-platform.js';
import { services } from './services.js';

const usage = 'Usage: npm run dead-letters [-- retry SERVICE ID]';
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** How long the running service is waited for. */
const patienceMs = 15_000;

/**
 * `npm run dead-letters`: the events whose effects failed for good, a line each;
 * `npm run dead-letters -- retry SERVICE ID` asks the running service to handle one again, which happens in one
 * transaction or not at all.
 */
const [action = 'list', service = '', id = ''] = process.argv.slice(2);

await besidePlatform(NoSettings, async ({ connect, connectAll }) => {
  if (action !== 'list' && (action !== 'retry' || service === '')) throw new Error(usage);
  if (action === 'retry') return retry(new DeadLetterList(await connect(service)));
  for (const [{ name }, dataSource] of await connectAll(services)) {
    const letters = await new DeadLetterList(dataSource).latest();
    if (letters.length === 0) console.log(`${name}: none`);
    for (const letter of letters) {
      console.log(
        `${name} ${letter.id} ${letter.eventName} → ${letter.consumer}, ${letter.tries} tries, ${letter.lastFailedAt.toISOString()}: ${letter.lastError}`,
      );
    }
  }
});

async function retry(letters: DeadLetterList): Promise<void> {
  if (!uuid.test(id)) throw new Error(`"${id}" is not the id of a dead letter. ${usage}`);
  const outcome = await letters.retry(id, patienceMs);
  if (outcome.is === 'unknown') throw new Error(`${service} has no dead letter ${id}`);
  if (outcome.is === 'failed') throw new Error(`the event failed again: ${outcome.lastError}`);
  console.log(
    outcome.is === 'handled'
      ? 'Handled.'
      : `Asked for. No process of ${service} has taken it up yet; it is handled when one runs.`,
  );
}
