/** How a random id is spelt. */
export const randomIdForm = /^[0-9a-f]{32}$/;

/**
 * 128 random bits. `crypto.randomUUID` is missing in pages of plain http on another host than localhost (Web
 * Cryptography API: a secure context only).
 */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
