/** So many minutes, in words: `1 minute`, `30 minutes`. */
export function minutes(count: number): string {
  return count === 1 ? '1 minute' : `${count} minutes`;
}
