import { expect, it } from '@jest/globals';
import { assert, bigInt, constantFrom, integer, property, record, tuple } from 'fast-check';
import { cursorOf, positionsOfCursor } from './log-cursor.js';
import { comparePositions } from './log-line.js';

/** As releases read a cursor that knew one position alone. */
function positionInEarlierReleases(cursor: string) {
  const form = /^(asc|desc)\.(\d{1,19})\.(\d{1,10})$/;
  const [, , atNs = '', sourceNo = ''] = form.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  return { atNs: BigInt(atNs), sourceNo: Number(sourceNo) };
}

const position = record({
  atNs: bigInt({ min: 0n, max: 2n ** 63n - 1n }),
  sourceNo: integer({ min: 1, max: 2 ** 31 - 1 }),
});

it('law: a cursor is read as it was written, and by replicas of an earlier release as the later position', () => {
  assert(
    property(
      constantFrom('asc', 'desc'),
      tuple(position, position),
      integer({ min: 1, max: 2 }),
      (order, two, count) => {
        const positions = two.slice(0, count).toSorted((one, other) => comparePositions(other, one));
        const cursor = cursorOf(order, positions.toReversed());
        expect(positionsOfCursor(order, cursor)).toEqual(positions);
        expect(positionInEarlierReleases(cursor)).toEqual(positions[0]);
        expect(cursor.length).toBeLessThanOrEqual(100);
      },
    ),
  );
});
