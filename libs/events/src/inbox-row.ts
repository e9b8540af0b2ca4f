import type { DomainEvent } from './courier.js';

/** SQL: columns of a row of the inbox by which the event is known, and its place in the sequence of its publisher. */
export const inboxColumns = 'consumer, event_id, publisher, event_name, position, previous';
export const inboxParameters = '$1::text, $2::uuid, $3::text, $4::text, $5::bigint, $6::bigint';

/** The values for `inboxParameters`. An event without a position is in no sequence. */
export function inboxValues(consumer: string, { id, name, publisher, position, previous }: DomainEvent): unknown[] {
  const isNumbered = publisher !== undefined && position !== undefined;
  return [consumer, id, ...(isNumbered ? [publisher, name, position, previous] : [null, null, null, null])];
}
