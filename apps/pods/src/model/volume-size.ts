/** Decimal GB, 10^9 bytes. */
export function gigabytesOf(bytes: string | null): number | null {
  return bytes === null ? null : Number(bytes) / 1e9;
}
