/** SQL for an instant as the wire has it: ISO 8601, UTC, milliseconds. */
export function instantJson(column: string): string {
  return `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}
