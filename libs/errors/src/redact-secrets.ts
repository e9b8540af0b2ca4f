const secrets: readonly [RegExp, string][] = [
  [/atl_[0-9A-Za-z]{38}/g, 'atl_[redacted]'],
  // Begins where a word does: tried from within one, a long word would cost the square of its length. Ends before a
  // quote: in a line of JSON an address may follow in another field.
  [/(?<!\w)(\w+:\/\/(?:[^\s:/?#@"]*:)?)[^\s/?#@"]+@/g, '$1[redacted]@'],
];

/**
 * A text without what looks like an API key, and without the password of a URL, or its token where it has no user
 * name: `nats://[redacted]@host`, `postgres://atoll:[redacted]@host`.
 */
export function redactSecrets(text: string): string {
  // Most texts hold nothing of the kind, and finding that out is cheap.
  if (!text.includes('atl_') && !text.includes('://')) return text;
  return secrets.reduce((redacted, [pattern, replacement]) => redacted.replace(pattern, replacement), text);
}
