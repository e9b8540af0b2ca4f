import type { EventConsumer } from '../courier.js';
import { MissingEvents } from '../missing-events.js';
import type { ReceivedEvents } from '../received-events.js';

type Source = ConstructorParameters<typeof MissingEvents>[1];

/** Looks for what the consumer of letters misses, of which `received` says what it has. */
export function looksFor(
  received: object,
  source: Source,
  {
    checkEveryMs = 3_600_000,
    take = async (): Promise<unknown> => 'done',
    names = ['orders.placed'],
  }: { checkEveryMs?: number; take?: unknown; names?: string[] } = {},
): MissingEvents {
  const consumer = { name: 'letters', take } as unknown as EventConsumer;
  const awaiting = [{ consumer, events: names.map((name) => ({ name, publisher: 'orders' })) }];
  const rules = { checkEveryMs, graceMs: 0, untakenMs: 0 };
  return new MissingEvents(received as ReceivedEvents, source, awaiting, rules);
}
