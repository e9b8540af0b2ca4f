import type { EventConsumer } from '../courier.js';
import { MissingEvents } from '../missing-events.js';
import type { ReceivedEvents } from '../received-events.js';

type Source = ConstructorParameters<typeof MissingEvents>[1];

/**
 * Looks for what the consumer of letters misses, of which `received` says what it has. `publisher`: null if any service
 * may publish it.
 */
export function looksFor(
  received: object,
  source: Source,
  {
    checkEveryMs = 3_600_000,
    take = async (): Promise<unknown> => 'done',
    names = ['orders.placed'],
    publisher = 'orders',
  }: { checkEveryMs?: number; take?: unknown; names?: string[]; publisher?: string | null } = {},
): MissingEvents {
  const consumer = { name: 'letters', take } as unknown as EventConsumer;
  const awaiting = [{ consumer, events: names.map((name) => ({ name, publisher: publisher ?? undefined })) }];
  const rules = { checkEveryMs, graceMs: 0, untakenMs: 0 };
  return new MissingEvents(received as ReceivedEvents, source, awaiting, rules);
}
