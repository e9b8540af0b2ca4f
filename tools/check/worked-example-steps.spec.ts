import { describe, expect, it } from '@jest/globals';
import { answerProblem, applyDiff, stepsOf } from './worked-example-steps.js';

const document = (...blocks: string[]) =>
  `# A\n\n## Another chapter\n\n\`\`\`sh\nfalse\n\`\`\`\n\n## Sail\n\n${blocks.join('\n\n')}\n\n## Land\n\n\`\`\`sh\nfalse\n\`\`\`\n`;

describe('the steps of a document', () => {
  it('are what its blocks and the paragraphs before them say, of one chapter', () => {
    const steps = stepsOf(
      document(
        '### Hoist',
        'See `a.ts`. New, `b/c.ts`:',
        '```ts\nexport {};\n```',
        'And in `d.ts`:',
        '```diff\n+x\n```',
        '### Go',
        '```sh\necho 1\n```',
        '```json\n1\n```',
      ),
      'Sail',
    );
    expect(steps).toEqual([
      { kind: 'create', path: 'b/c.ts', text: 'export {};\n', section: 'Hoist' },
      { kind: 'edit', path: 'd.ts', diff: '+x\n', section: 'Hoist' },
      { kind: 'run', script: 'echo 1\n', section: 'Go' },
      { kind: 'answer', json: '1\n', section: 'Go' },
    ]);
  });

  it('are refused where a block belongs to no file', () => {
    expect(() => stepsOf(document('Somewhere:', '```ts\nexport {};\n```'), 'Sail')).toThrow('Which file is this?');
    expect(() => stepsOf(document('Not said to be new, `a.ts`:', '```ts\nexport {};\n```'), 'Sail')).toThrow(
      'Which file is this?',
    );
    expect(() => stepsOf(document(), 'Fly')).toThrow('no chapter "Fly"');
  });
});

describe('a diff', () => {
  it('replaces what it removes, and keeps what stands beside it', () => {
    expect(applyDiff('a', 'one\ntwo\nthree\n', ' one\n-two\n+2\n@@\n three\n+four\n')).toBe('one\n2\nthree\nfour\n');
    expect(applyDiff('a', 'price: $1\n', '-price: $1\n+price: $&\n')).toBe('price: $&\n');
  });

  it('is refused where its lines are in the file not once', () => {
    for (const [text, diff] of [
      ['one\n', ' two\n+x\n'],
      ['one\none\n', ' one\n+x\n'],
      ['none\n', ' one\n+x\n'],
    ] as const) {
      expect(() => applyDiff('a.ts', text, diff)).toThrow('a.ts must have these lines once');
    }
  });
});

describe('an answer', () => {
  it('is the last line that was printed, with any text where the document has …', () => {
    expect(answerProblem('x\n{"id":"7","n":[1]}\n', '{"id": "…", "n": [1]}')).toBeUndefined();
    for (const other of [
      '{"id":"7","n":[2]}',
      '{"id":7,"n":[1]}',
      '{"id":"7","n":[1],"more":1}',
      '{"id":"7"}',
      'Not found',
      '',
    ]) {
      expect(answerProblem(other, '{"id": "…", "n": [1]}')).toContain('the answer is');
    }
  });
});
