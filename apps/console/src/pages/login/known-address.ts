let address = '';

/**
 * For the log-in that follows: whoever has just set a password need not type the address. It stands in no address bar
 * and no history.
 */
export function rememberAddress(email: string): void {
  address = email;
}

export function knownAddress(): string {
  return address;
}
