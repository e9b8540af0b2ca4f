/**
 * Sends those values of a form that the user has set, and nothing where none was: the others may have been changed by
 * somebody else since the form was opened. One that was set back is sent too: a call before may have been done, and its
 * answer lost.
 */
export async function sendChanges<Values extends object>(
  values: Values,
  touched: ReadonlySet<string>,
  send: (changes: Partial<Values>) => Promise<unknown>,
): Promise<void> {
  const changes = Object.entries(values).filter(([name]) => touched.has(name));
  if (changes.length > 0) await send(Object.fromEntries(changes) as Partial<Values>);
}
