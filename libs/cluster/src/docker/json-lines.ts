import type { Readable } from 'node:stream';

/** In characters: the longest line is an event, which repeats the labels of its container. */
const longestLine = 1024 * 1024;

/** JSON values of a body that has one on each line, as they come. Throws `RangeError` for a line without end. */
export async function* jsonLines<T>(body: Readable): AsyncGenerator<T> {
  let rest = '';
  body.setEncoding('utf8');
  for await (const chunk of body as AsyncIterable<string>) {
    // What came before has no end of a line, so it is not read again.
    const [first = '', ...others] = chunk.split('\n');
    const lines = [rest + first, ...others];
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as T;
    if (rest.length > longestLine) throw new RangeError(`A line is longer than ${longestLine} characters.`);
  }
  if (rest.trim() !== '') yield JSON.parse(rest) as T;
}
