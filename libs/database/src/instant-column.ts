/** The type of a column of instants, in milliseconds. */
export const instant = { type: 'timestamp with time zone', precision: 3 } as const;
