/** JSON on its way: a text, or its UTF-8 in parts where it is too long for anybody to walk through it in one go. */
export type JsonText = string | readonly Uint8Array[];

/**
 * A `T` that is JSON already, as UTF-8 in parts. A handler may answer with one: it goes over the wire as it is. For
 * answers of megabytes, which would hold up everybody else in the process while they are made into objects, those into
 * text and that into bytes.
 */
export class Json<T> {
  /** Keeps the JSON of one type from being taken for that of another. */
  declare protected readonly type: T;

  constructor(readonly parts: readonly Uint8Array[]) {}
}

export function byteLengthOf(json: JsonText): number {
  return typeof json === 'string' ? Buffer.byteLength(json) : json.reduce((sum, { length }) => sum + length, 0);
}

/** The whole as one text. For answers that are read here; what is only passed on stays in parts. */
export function textOf(json: JsonText): string {
  return typeof json === 'string' ? json : Buffer.concat(json).toString('utf8');
}
