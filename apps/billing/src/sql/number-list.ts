/** An array of numbers as PostgreSQL reads it; the driver would quote each of them. */
export function listOf(numbers: readonly (number | string)[]): string {
  return `{${numbers.join(',')}}`;
}
