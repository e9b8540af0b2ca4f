import { expect, it } from '@jest/globals';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { OutputEnd } from './output-end.js';

const mark = '\u001e4711-0815\u001e';
const complaints = [
  'Error: write unixpacket @->/proc/self/fd/12/attach: write: broken pipe\n',
  'Error: read unixpacket @->/proc/self/fd/15/attach: read: connection reset by peer\n',
];

/** What is passed on of a stream that comes in these pieces. */
function read(pieces: readonly string[]): { output: string; isMarked: boolean; isCut: boolean } {
  const end = new OutputEnd('4711-0815');
  const output = [...pieces.map((piece) => end.push(Buffer.from(piece))), end.end()].join('');
  return { output, isMarked: end.isMarked, isCut: end.isCut };
}

/** Output that is often nearly a mark, or nearly what Podman says. No mark begins in it, nor with the one behind it. */
const outputs = fc
  .array(
    fc.oneof(
      fc.string(),
      fc
        .tuple(fc.constantFrom(mark, ...complaints), fc.nat(90), fc.nat(90))
        .map(([text, from, to]) => text.slice(from, to)),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(''))
  .filter((text) => `${text}${mark}`.indexOf(mark) === text.length);

function cutAt(text: string, places: readonly number[]): string[] {
  const ends = [...places.map((place) => place % (text.length + 1)), text.length].sort((one, other) => one - other);
  return ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end));
}

it('law: output passes unchanged without the mark behind it and without what Podman adds, wherever the stream is cut', () => {
  const [added, places] = [fc.constantFrom('', ...complaints), fc.array(fc.nat(), { maxLength: 10 })];
  // Nobody can tell apart what another process writes behind the mark in just these words.
  const others = outputs.map((text) => text.replace(/\n+$/, ''));
  fc.assert(
    fc.property(outputs, others, added, places, (before, after, complaint, at) => {
      const seen = read(cutAt(`${before}${mark}${after}${complaint}`, at));
      expect(seen).toEqual({ output: `${before}${after}`, isMarked: true, isCut: complaint !== '' });
    }),
    runs(1_000),
  );
});

it.each(complaints)('says that Podman may have dropped output without a mark: %s', (complaint) => {
  expect(read(['half of the out', complaint])).toEqual({ output: 'half of the out', isMarked: false, isCut: true });
  expect(read([`half${complaint.slice(0, 40)}`, complaint.slice(40)])).toMatchObject({ output: 'half', isCut: true });
});

it('takes the same words for output where more of it follows', () => {
  const [text] = complaints as [string];
  expect(read([text, 'and on'])).toEqual({ output: `${text}and on`, isMarked: false, isCut: false });
});

it('holds nothing back that somebody waits for while the command runs', () => {
  const end = new OutputEnd('4711-0815');
  for (const shown of ['E', 'Error: ', 'Error: read', '\u001e4712'])
    expect(end.push(Buffer.from(shown)).toString()).toBe(shown);
});
