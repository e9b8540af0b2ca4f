import type { IdempotencyHeader } from '../api/client.js';

/** What stood in a form when the session ended under it. In the memory of the tab alone. */
interface Unsent {
  /** Its page, and what it is kept as there. */
  form: string;
  userId: string;
  /** Those that were typed. */
  values: object;
  touched: ReadonlySet<string>;
  header: IdempotencyHeader;
}

let unsent: Unsent | undefined;

export function keepUnsent(form: Unsent): void {
  unsent = form;
}

/** What the same user had typed in the same form. What somebody else had is forgotten. */
export function unsentOf(userId: string, form: string | undefined): Unsent | undefined {
  if (unsent?.userId !== userId) forgetUnsent();
  return unsent?.form === form ? unsent : undefined;
}

export function isUnsent(): boolean {
  return unsent !== undefined;
}

export function forgetUnsent(): void {
  unsent = undefined;
}
