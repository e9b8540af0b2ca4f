/** SQL for an instant as the wire has it: ISO 8601, UTC, milliseconds. `value`: an expression. */
export function instantJson(value: string): string {
  return `to_char(${value} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}

/** An array of numbers as PostgreSQL reads it; the driver would quote each of them. */
export function numberList(numbers: readonly (number | bigint | string | null)[]): string {
  return `{${numbers.map((number) => number ?? 'NULL').join(',')}}`;
}
