import { platformServices } from '@atoll/service-names';
import type { DeadLetter, Machine } from './operation-queries.js';

const matching = (value: unknown, form: RegExp): string | undefined =>
  typeof value === 'string' && form.test(value) ? value : undefined;

export interface ProcessSearch {
  kind?: Machine['kind'];
  state?: string;
  page?: string;
}

/** What of an address means something; the rest is dropped, so that a broken link still leads to a page. */
export function validateProcesses({ kind, state, page }: Record<string, unknown>): ProcessSearch {
  const named = matching(state, /^[a-z][a-z_]{0,39}$/);
  const numbered = matching(page, /^[1-9]\d{0,5}$/);
  return { ...(kind === 'waiting' && { kind }), ...(named && { state: named }), ...(numbered && { page: numbered }) };
}

export interface DeadLetterSearch {
  service?: DeadLetter['service'];
  cursor?: string;
}

export function validateDeadLetters({ service, cursor }: Record<string, unknown>): DeadLetterSearch {
  const place = matching(cursor, /^(?:0|[1-9]\d{0,15})_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  const named = platformServices.find((name) => name === service);
  return { ...(named && { service: named }), ...(place && { cursor: place }) };
}
