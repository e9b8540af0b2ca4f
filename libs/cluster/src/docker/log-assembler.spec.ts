import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { runs } from '@atoll/testing';
import type { LogLine } from '../observations.js';
import { LogAssembler } from './log-assembler.js';
import type { Frame } from './multiplexed.js';

interface Piece {
  readonly stream: Frame['stream'];
  /** Unix seconds. */
  readonly second: number;
  readonly text: string;
}

const begin = 1_790_000_000;
const frameOf = ({ stream, second, text }: Piece): Frame => {
  const stamp = new Date(second * 1000).toISOString().replace('.000Z', 'Z');
  return { stream, data: Buffer.from(`${stamp} ${text}`) };
};

/** Reads as an engine gives them: what is not older than `since`. */
function read(pieces: readonly Piece[], cursor: string | null, count = Infinity): { lines: LogLine[]; cursor: string } {
  const assembler = new LogAssembler(cursor);
  // `<second>.999999999`, of which a number would keep no fraction.
  const since = assembler.since === null ? 0 : Number(assembler.since.split('.')[0]);
  const given = pieces.filter(({ second }) => second > since).slice(0, count);
  const lines = given.flatMap((piece) => assembler.take(frameOf(piece), 0));
  if (count === Infinity) lines.push(...assembler.flush(0, true));
  return { lines, cursor: assembler.cursor };
}

const piece = fc.record({
  stream: fc.constantFrom('stdout' as const, 'stderr' as const),
  /**
   * Mostly within one second; the streams are stamped apart, so an instant goes back at times, by up to the two seconds
   * that the cursor allows.
   */
  step: fc.oneof({ weight: 8, arbitrary: fc.constant(0) }, { weight: 3, arbitrary: fc.nat(4) }),
  lateS: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(2) }),
  length: fc.constantFrom(0, 1, 5, 8_192),
  endsLine: fc.boolean(),
});

const logs = fc.array(piece, { maxLength: 60 }).map((parts) => {
  let second = begin;
  return parts.map(({ stream, step, lateS, length, endsLine }, index): Piece => {
    second += step;
    return { stream, second: second - lateS, text: `${index}:`.padEnd(length, 'x') + (endsLine ? '\n' : '') };
  });
});

describe('lines of an engine’s log', () => {
  it('law: wherever readers stop, however often, they read what one reads who never stops', () => {
    fc.assert(
      fc.property(logs, fc.array(fc.nat(20), { maxLength: 8 }), (pieces, stops) => {
        const lines: LogLine[] = [];
        let cursor: string | null = null;
        for (const count of stops) {
          const part: ReturnType<typeof read> = read(pieces, cursor, count);
          lines.push(...part.lines);
          cursor = part.cursor;
        }
        lines.push(...read(pieces, cursor).lines);
        // The order between the streams is the engine's; an instant never goes back.
        for (const stream of ['stdout', 'stderr']) {
          const own = (all: readonly LogLine[]) =>
            all.filter((line) => line.stream === stream).map(({ message, isCut }) => [message, isCut]);
          expect(own(lines)).toEqual(own(read(pieces, null).lines));
        }
        const stamps = lines.map(({ timestamp }) => timestamp);
        expect(stamps).toEqual([...stamps].sort());
      }),
      runs(300),
    );
  });

  it('reads an open line from its oldest piece on, which is not its first where the clock went back', () => {
    const pieces: Piece[] = [
      { stream: 'stderr', second: begin, text: '0:' },
      { stream: 'stderr', second: begin - 1, text: '1:' },
      { stream: 'stdout', second: begin + 2, text: '2:\n' },
    ];
    const { cursor } = read(pieces, null, 3);
    expect(read(pieces, cursor).lines.map(({ message }) => message)).toEqual(['0:1:']);
  });

  it('joins the pieces of a line, cuts one over 16 KiB and marks it', () => {
    const pieces = Array.from({ length: 4 }, (_, index): Piece => ({
      stream: 'stdout',
      second: begin,
      text: 'y'.repeat(8_192) + (index === 3 ? '\n' : ''),
    }));
    const { lines } = read([...pieces, { stream: 'stdout', second: begin, text: 'next\n' }], null);
    expect(lines.map(({ message, isCut }) => [message.length, isCut])).toEqual([
      [16_384, true],
      [4, false],
    ]);
  });

  it('cuts between characters, never within one', () => {
    const { lines } = read([{ stream: 'stdout', second: begin, text: `a${'é'.repeat(8_192)}\n` }], null);
    expect(lines[0]).toMatchObject({ message: `a${'é'.repeat(8_191)}`, isCut: true });
  });

  it('gives a line that stays open for seconds as far as it is', () => {
    const assembler = new LogAssembler(null);
    expect(assembler.take(frameOf({ stream: 'stderr', second: begin, text: '10 %' }), 1_000)).toEqual([]);
    expect(assembler.openForMs(2_000)).toBe(4_000);
    expect(assembler.flush(6_000)).toMatchObject([{ message: '10 %', stream: 'stderr' }]);
    expect(assembler.take(frameOf({ stream: 'stderr', second: begin, text: ' 20 %\n' }), 6_001)).toMatchObject([
      { message: ' 20 %' },
    ]);
  });

  it('refuses a cursor that it has not made', () => {
    for (const cursor of ['', '{}', '[]', '[1,2,3]', '["a",0,0,0,0,0,0,""]']) {
      expect(() => new LogAssembler(cursor)).toThrow(expect.objectContaining({ code: 'invalid' }));
    }
  });
});
