import type { DomainEvent, EventConsumer, Outcome } from '../courier.js';
import { MissingEvents } from '../missing-events.js';
import type { Gap, ReceivedEvents, Sequence } from '../received-events.js';

type Source = ConstructorParameters<typeof MissingEvents>[1];

/** The inbox of a consumer in memory, of which nothing has come and everything is awaited. */
export class InboxInMemory {
  /** By id. */
  readonly #rows = new Map<string, { name: string; position: number; isTaken: boolean; dueAtMs: number }>();

  readonly progress = async () => ({ position: 0, lost: 0 });

  readonly look = async ({ eventName }: Sequence) => {
    const rows = [...this.#rows.values()].filter(({ name }) => name === eventName);
    const untaken = rows.filter(({ isTaken }) => !isTaken);
    const due = untaken
      .filter(({ dueAtMs }) => dueAtMs <= performance.now())
      .toSorted((one, other) => one.dueAtMs - other.dueAtMs || one.position - other.position);
    return {
      last: Math.max(0, ...rows.map(({ position }) => position)),
      gaps: [],
      filledTo: 0,
      due: due.map(({ position }): Gap => ({ after: position - 1, upTo: position })),
      untaken: untaken.length,
    };
  };

  readonly claim = async ({ eventName: name }: Sequence, events: readonly DomainEvent[], forMs: number) => {
    const own = events.filter(({ id }) => !this.#rows.has(id));
    const dueAtMs = performance.now() + forMs;
    for (const { id, position = 0 } of own) this.#rows.set(id, { name, position, isTaken: false, dueAtMs });
    return new Set(own.map(({ id }) => id));
  };

  readonly claimDue = async (_: Sequence, events: readonly DomainEvent[], forMs: number) => {
    const rows = events.map(({ id }) => ({ id, row: this.#rows.get(id)! }));
    const own = rows.filter(({ row }) => !row.isTaken && row.dueAtMs <= performance.now());
    for (const { row } of own) row.dueAtMs = performance.now() + forMs;
    return new Set(own.map(({ id }) => id));
  };

  readonly postpone = async (_consumer: string, ids: readonly string[], ms: number) => {
    for (const id of ids) this.#rows.get(id)!.dueAtMs = performance.now() + ms;
  };

  taken(id: string): void {
    this.#rows.get(id)!.isTaken = true;
  }
}

/**
 * Looks for what the consumer of letters misses, or others, of which `received` says what differs from an empty inbox.
 * `publisher`: null if any service may publish it. `inbox`: for replicas of one service. `consumers`: the
 * names of the events of each.
 */
export function looksFor(
  received: { look?: (...given: unknown[]) => Promise<object>; [name: string]: unknown },
  source: Source,
  {
    checkEveryMs = 3_600_000,
    take = async (): Promise<unknown> => 'done',
    names = ['orders.placed'],
    publisher = 'orders',
    inbox = new InboxInMemory(),
    consumers = { letters: names },
  }: {
    checkEveryMs?: number;
    take?: unknown;
    names?: string[];
    publisher?: string | null;
    inbox?: InboxInMemory;
    consumers?: Record<string, string[]>;
  } = {},
): MissingEvents {
  const consumerOf = (name: string, eventNames: string[]): EventConsumer => ({
    name,
    eventNames,
    take: async (event, attempt) => {
      const outcome = await (take as (event: DomainEvent, attempt: number) => Promise<Outcome>)(event, attempt);
      if (outcome === 'done') inbox.taken(event.id);
      return outcome;
    },
  });
  const look = async (sequence: Sequence, ...given: unknown[]) => ({
    ...(await inbox.look(sequence)),
    ...(await received.look?.(sequence, ...given)),
  });
  const awaiting = Object.entries(consumers).map(([consumer, eventNames]) => ({
    consumer: consumerOf(consumer, eventNames),
    events: eventNames.map((name) => ({ name, publisher: publisher ?? undefined })),
  }));
  const rules = { checkEveryMs, graceMs: 0, untakenMs: 90_000 };
  return new MissingEvents({ ...inbox, ...received, look } as unknown as ReceivedEvents, source, awaiting, rules);
}
