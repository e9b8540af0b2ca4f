let token = '';

/**
 * Takes the token behind `#` out of the address: it is to stand neither in the history nor on a screen that is shared.
 */
export function takeToken(): void {
  const found = location.hash.slice(1);
  if (found === '') return;
  token = found;
  history.replaceState(history.state, '', location.pathname);
}

/** The token of the link that was opened last in this tab; empty where none was. */
export function currentToken(): string {
  return token;
}
