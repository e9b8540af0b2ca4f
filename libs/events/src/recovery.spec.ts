import { describe, expect, it } from '@jest/globals';
import type { EventsAfter, EventsPage, PublishedEvent } from '@atoll/contracts';
import { newId } from '@atoll/database';
import { expectErrors, runs } from '@atoll/testing';
import fc from 'fast-check';
import type { DomainEvent } from './courier.js';
import { MissingEvents } from './missing-events.js';
import type { Gap, Received, ReceivedEvents } from './received-events.js';
import { eventually } from './world/eventually-fixture.js';

const rules = { checkEveryMs: 3_600_000, graceMs: 5_000, untakenMs: 90_000 };
const name = 'orders.placed';

interface Publisher {
  /** Positions of what it keeps. */
  readonly kept: readonly number[];
  readonly forgottenUpTo?: number;
  /** Events of one page. */
  readonly pageOf?: number;
}

/** One look of one consumer that has received so much, at a publisher; returns what was asked, taken and given up. */
async function look(
  { last, gaps }: Pick<Received, 'last' | 'gaps'>,
  { kept, forgottenUpTo = 0, pageOf = 200 }: Publisher,
) {
  const asked: EventsAfter[] = [];
  const taken: number[] = [];
  const givenUp: [number, number][] = [];
  const received = {
    progress: () => Promise.resolve({ position: 0, lost: 0 }),
    look: () => Promise.resolve({ last, gaps, filledTo: 0, due: [], untaken: 0 }),
    claim: (_: unknown, events: readonly DomainEvent[]) => Promise.resolve(new Set(events.map(({ id }) => id))),
    giveUp: (_: unknown, after: number, upTo: number) => Promise.resolve(Boolean(givenUp.push([after, upTo]))),
  } as unknown as ReceivedEvents;
  const read = (_: string, question: EventsAfter): Promise<EventsPage> => {
    asked.push(question);
    const { after, up_to = Infinity } = question;
    const inRange = kept.filter((position) => position > after && position <= up_to);
    const events = inRange.slice(0, pageOf).map((position): PublishedEvent => ({
      id: newId(),
      position,
      previous: position - 1,
      payload: {},
      occurred_at: new Date().toISOString(),
    }));
    return Promise.resolve({ events, forgotten_up_to: forgottenUpTo, has_none: inRange.length === 0 });
  };
  const take = ({ position = 0 }) => Promise.resolve((taken.push(position), 'done' as const));
  const consumer = { name: 'letters', eventNames: [name], take };
  const missing = new MissingEvents(received, { read }, [{ consumer, events: [{ name, publisher: 'orders' }] }], rules);
  missing.start();
  // The last question of a look is for what came after the last event, and is answered with nothing.
  await eventually(() =>
    expect(asked.some(({ after, up_to }) => up_to === undefined && after >= Math.max(last, ...kept))).toBe(true),
  );
  await missing.stop();
  return { asked, taken, givenUp, count: missing.count };
}

const gapsOf = fc
  .uniqueArray(fc.integer({ min: 1, max: 40 }), { minLength: 2, maxLength: 8 })
  .map((bounds) => bounds.toSorted((one, other) => one - other))
  .map((bounds) =>
    bounds.flatMap((after, at): Gap[] =>
      at % 2 === 0 && at + 1 < bounds.length ? [{ after, upTo: bounds[at + 1]! }] : [],
    ),
  );

describe('a consumer that looks for what it misses', () => {
  it('law: asks its publisher for the gaps, page by page, and for what came after its last, and for nothing that it has', async () => {
    await fc.assert(
      fc.asyncProperty(gapsOf, fc.integer({ min: 1, max: 5 }), fc.nat({ max: 5 }), async (gaps, pageOf, after) => {
        const last = 41;
        const kept = Array.from({ length: last + after }, (_, at) => at + 1);
        const isMissing = (position: number) =>
          position > last || gaps.some((gap) => position > gap.after && position <= gap.upTo!);
        const { asked, taken, givenUp, count } = await look({ last, gaps }, { kept, pageOf });
        expect(taken).toEqual(kept.filter(isMissing));
        expect([givenUp, count]).toEqual([[], 0]);
        expect(
          asked.every(({ event_name, published_before_ms }) => event_name === name && published_before_ms === 5_000),
        ).toBe(true);
        // Of each gap the pages that have any, and one more, which has none.
        const pages = [...gaps.map((gap) => gap.upTo! - gap.after), after].reduce(
          (sum, events) => sum + Math.ceil(events / pageOf) + 1,
          0,
        );
        expect(asked).toHaveLength(pages);
      }),
      { ...runs(25), endOnFailure: true },
    );
  });

  it.each([
    ['nothing is kept of it', { kept: [6, 7] }, 5],
    ['its begin is forgotten', { kept: [4, 5, 6, 7], forgottenUpTo: 3 }, 3],
    ['more than it is forgotten', { kept: [7], forgottenUpTo: 6 }, 5],
  ])('gives a gap up where %s, as far as it is lost, and counts it', async (_, publisher: Publisher, upTo) => {
    expectErrors(new RegExp(`orders\\.placed after position 2, up to ${upTo}, are lost`));
    const { taken, givenUp, count } = await look({ last: 7, gaps: [{ after: 2, upTo: 5 }] }, publisher);
    expect([givenUp, count]).toEqual([[[2, upTo]], 1]);
    expect(taken).toEqual(publisher.kept.filter((position) => position <= 5));
  });
});
