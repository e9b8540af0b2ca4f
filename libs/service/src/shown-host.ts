/** Where pages of this machine have it. Passkeys are for names. */
export function publicHost(host: string): string {
  const shown = shownHost(host);
  return shown === '127.0.0.1' || shown === '[::1]' ? 'localhost' : shown;
}

/** As it stands in a URL at which this machine reaches what listens on `host`, an address or a name. */
export function shownHost(host: string): string {
  const shown = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return shown.includes(':') ? `[${shown}]` : shown;
}
