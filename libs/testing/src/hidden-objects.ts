import type * as Jest from '@jest/globals';
import { newId } from '@atoll/database';
import { isAppError } from '@atoll/errors';

/** Of the same form, and of nothing that there is. */
function unknownLike(value: unknown): string {
  if (typeof value !== 'string') throw new Error(`A place has a name that is no text: ${String(value)}`);
  if (/^\d+$/.test(value)) return '999999999';
  return value.length === newId().length ? newId() : 'job-xxxxx';
}

/** All of an error that goes over the wire. */
const said = (error: unknown): unknown => (isAppError(error) ? error.toWire() : String(error));

/** `asks`: by name, what somebody of another team asks about a place. `stateOf`: all that the team of a place has. */
export function itHidesObjects<Place>(
  placeToRead: () => Promise<Place>,
  asks: readonly (readonly [name: string, ask: (place: Place) => Promise<unknown>])[],
  stateOf: (place: Place) => Promise<unknown>,
): void {
  const { expect, it } = globalThis as unknown as Pick<typeof Jest, 'expect' | 'it'>;
  it('what is of another team is refused in the words for what does not exist, and stays as it is', async () => {
    const here = await placeToRead();
    const entries = Object.entries(here as object).map(([name, value]) => [name, unknownLike(value)]);
    const nowhere = Object.fromEntries(entries) as Place;
    const before = await stateOf(here);
    for (const [name, ask] of asks) {
      const answers = await Promise.all([here, nowhere].map((place) => ask(place).catch(said)));
      expect([name, answers[0]]).toEqual([name, answers[1]]);
    }
    expect(await stateOf(here)).toEqual(before);
  });
}
