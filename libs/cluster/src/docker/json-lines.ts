import type { Readable } from 'node:stream';

/** JSON values of a body that has one on each line, as they come. */
export async function* jsonLines<T>(body: Readable): AsyncGenerator<T> {
  let rest = '';
  body.setEncoding('utf8');
  for await (const chunk of body as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as T;
  }
  if (rest.trim() !== '') yield JSON.parse(rest) as T;
}
