/** Whether a key is as the platform shows it after its creation, `atl_ab12…wxyz`. No key has the `…`. */
export function isMasked(key: string): boolean {
  return key.includes('…');
}
