import type { Header } from './form-dialog.js';

/** What stood in a form when the session ended under it. In the memory of the tab alone. */
interface Unsent {
  /** The page and the title of the dialog. */
  form: string;
  userId: string;
  values: object;
  touched: ReadonlySet<string>;
  header: Header;
}

let unsent: Unsent | undefined;

export function keepUnsent(form: Unsent): void {
  unsent = form;
}

/** What the same user had in the same form. Of anybody else, it is forgotten. */
export function unsentOf(userId: string, form: string): Unsent | undefined {
  if (unsent?.userId !== userId) forgetUnsent();
  return unsent?.form === form ? unsent : undefined;
}

export function isUnsent(): boolean {
  return unsent !== undefined;
}

export function forgetUnsent(): void {
  unsent = undefined;
}
