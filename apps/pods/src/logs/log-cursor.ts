import { invalidField } from '@atoll/errors';
import { comparePositions, type LogPosition } from './log-line.js';
import type { LogOrder } from './log-store.js';

const form = /^(asc|desc)\.(\d{1,19})\.(\d{1,10})$/;

/**
 * Where a page ended, as text for the caller. The later of two positions stands first: earlier releases stop decoding
 * at `=`, the padding of RFC 4648, and so go on from there for both sources, as they did.
 */
export function cursorOf(order: LogOrder, positions: readonly LogPosition[]): string {
  return positions
    .toSorted((one, other) => comparePositions(other, one))
    .map(({ atNs, sourceNo }) => Buffer.from(`${order}.${atNs}.${sourceNo}`).toString('base64url'))
    .join('=');
}

/**
 * One position, or one in each of the two sources of a pod. Throws `invalid_input` for what `cursorOf` did not write,
 * and for a cursor of the other order.
 */
export function positionsOfCursor(order: LogOrder, cursor: string): LogPosition[] {
  return cursor.split('=').map((text) => {
    const [, itsOrder, atNs = '', sourceNo = ''] = form.exec(Buffer.from(text, 'base64url').toString('latin1')) ?? [];
    const position = { atNs: BigInt(atNs), sourceNo: Number(sourceNo) };
    if (itsOrder === order && position.atNs < 2n ** 63n && position.sourceNo < 2 ** 31) return position;
    throw invalidField('cursor', 'cursor', 'must be the next_cursor of a page that was read in the same order');
  });
}
