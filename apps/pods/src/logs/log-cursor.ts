import { invalidInput } from '@atoll/errors';
import type { LogPosition } from './log-line.js';
import type { LogOrder } from './log-store.js';

/** One position, or one in each of the two sources of a pod. */
const form = /^(asc|desc)((?:\.\d{1,19}\.\d{1,10}){1,2})$/;

/** Where a page ended, as text for the caller. */
export function cursorOf(order: LogOrder, positions: readonly LogPosition[]): string {
  return Buffer.from([order, ...positions.flatMap(({ atNs, sourceNo }) => [atNs, sourceNo])].join('.')).toString(
    'base64url',
  );
}

/** Throws `invalid_input` for what `cursorOf` did not write, and for a cursor of the other order. */
export function positionsOfCursor(order: LogOrder, cursor: string): LogPosition[] {
  const [, itsOrder, numbers = ''] = form.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  const positions = [...numbers.matchAll(/\.(\d+)\.(\d+)/g)].map(([, atNs = '', sourceNo]) => ({
    atNs: BigInt(atNs),
    sourceNo: Number(sourceNo),
  }));
  if (itsOrder === order && positions.every(({ atNs, sourceNo }) => atNs < 2n ** 63n && sourceNo < 2 ** 31))
    return positions;
  const message = 'cursor must be the next_cursor of a page that was read in the same order';
  throw invalidInput([{ path: 'cursor', code: 'cursor', message }]);
}
