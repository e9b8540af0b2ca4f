import { invalidInput } from '@atoll/errors';
import type { LogPosition } from './log-line.js';
import type { LogOrder } from './log-store.js';

const form = /^(asc|desc)\.(\d{1,19})\.(\d{1,10})$/;

/** Where a page ended, as text for the caller. */
export function cursorOf(order: LogOrder, { atNs, sourceNo }: LogPosition): string {
  return Buffer.from(`${order}.${atNs}.${sourceNo}`).toString('base64url');
}

/** Throws `invalid_input` for what `cursorOf` did not write, and for a cursor of the other order. */
export function positionOfCursor(order: LogOrder, cursor: string): LogPosition {
  const [, itsOrder, atNs = '', sourceNo = ''] = form.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  const position = { atNs: BigInt(atNs), sourceNo: Number(sourceNo) };
  if (itsOrder === order && position.atNs < 2n ** 63n && position.sourceNo < 2 ** 31) return position;
  const message = 'cursor must be the next_cursor of a page that was read in the same order';
  throw invalidInput([{ path: 'cursor', code: 'cursor', message }]);
}
