/** An object of which some fields are JSON already. */
export type JsonFields<T extends object> = { [Name in keyof T]: T[Name] | Json<T[Name]> };

/**
 * A `T` that is JSON already. A handler may answer with one: it goes over the wire as it is. For answers of megabytes, which take longer to be
 * made into objects and those into JSON than all that is calculated for them.
 */
export class Json<T> {
  /** Keeps the JSON of one type from being taken for that of another. */
  declare protected readonly type: T;

  constructor(readonly text: string) {}

  static object<T extends object>(fields: JsonFields<T>): Json<T> {
    let written = '';
    for (const [name, value] of Object.entries<unknown>(fields)) {
      const text = value instanceof Json ? value.text : (JSON.stringify(value) as string | undefined);
      if (text !== undefined) written += `${written && ','}${JSON.stringify(name)}:${text}`;
    }
    return new Json(`{${written}}`);
  }

  static list<T>(entries: readonly Json<T>[]): Json<T[]> {
    let written = '';
    for (const { text } of entries) written += `${written && ','}${text}`;
    return new Json(`[${written}]`);
  }
}
