/** A step of a document that is followed: what one of its code blocks, with the paragraph before it, says to do. */
export type Step =
  | { kind: 'create'; path: string; text: string; section: string }
  | { kind: 'edit'; path: string; diff: string; section: string }
  | { kind: 'run'; script: string; section: string }
  /** What the last line of the script before must have printed. */
  | { kind: 'answer'; json: string; section: string };

const block = /^```(\w+)\n([\s\S]*?)^```$/gm;

/**
 * The steps of a chapter (`## …`) of a Markdown document: a diff edits the file that the paragraph before it names
 * last, a script (`sh`) is run, JSON is its answer, and any other block is the text of a new file, which the paragraph
 * introduces by ``New, `path`:``. Throws for a block that says none of these.
 */
export function stepsOf(markdown: string, chapter: string): Step[] {
  const [, text] = new RegExp(`^## ${chapter}\n([\\s\\S]*?)(?=^## |$(?![\\s\\S]))`, 'm').exec(markdown) ?? [];
  if (text === undefined) throw new Error(`There is no chapter "${chapter}".`);
  return [...text.matchAll(block)].map(({ 1: language = '', 2: content = '', index }) => {
    const before = text.slice(0, index);
    const section = [...before.matchAll(/^### (.+)$/gm)].at(-1)?.[1] ?? '';
    const paragraph = before.trimEnd().split('\n\n').at(-1) ?? '';
    if (language === 'sh') return { kind: 'run', script: content, section };
    if (language === 'json') return { kind: 'answer', json: content, section };
    const [, isNew, path] = /(New, )?`([^`]+)`:$/.exec(paragraph) ?? [];
    if (path === undefined || (isNew === undefined) !== (language === 'diff'))
      throw new Error(`Which file is this?\n${paragraph}\n${content}`);
    return isNew ? { kind: 'create', path, text: content, section } : { kind: 'edit', path, diff: content, section };
  });
}

/**
 * The text with the diff applied. Its hunks, which `@@` divides, come in any order; the lines that each keeps or
 * removes must stand in the text exactly once. Throws where they do not.
 */
export function applyDiff(path: string, text: string, diff: string): string {
  return diff.split(/^@@\n/m).reduce((current, hunk) => {
    const lines = hunk.split('\n').slice(0, -1);
    const without = (sign: string) =>
      lines.flatMap((line) => (line.startsWith(sign) ? [] : [`${line.slice(1)}\n`])).join('');
    const old = without('+');
    const [place, ...others] = placesOf(old, current);
    if (place === undefined || others.length > 0) throw new Error(`${path} must have these lines once:\n${old}`);
    return current.slice(0, place) + without('-') + current.slice(place + old.length);
  }, text);
}

/** Where a text begins with these lines, of all beginnings of lines. */
function placesOf(lines: string, text: string): number[] {
  const beginnings = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  return beginnings.filter((beginning) => text.startsWith(lines, beginning));
}

/**
 * What is wrong with the last line that was printed, beside JSON in which `…` stands for any text; undefined where they
 * are alike.
 */
export function answerProblem(printed: string, json: string): string | undefined {
  const last = printed.trimEnd().split('\n').at(-1) ?? '';
  const expected = JSON.parse(json) as unknown;
  const isLike = (shown: unknown, real: unknown): boolean => {
    if (shown === '…') return typeof real === 'string';
    if (typeof shown !== 'object' || shown === null || typeof real !== 'object' || real === null) return shown === real;
    const names = new Set([...Object.keys(shown), ...Object.keys(real)]);
    return [...names].every((name) =>
      isLike((shown as Record<string, unknown>)[name], (real as Record<string, unknown>)[name]),
    );
  };
  return isLike(expected, parsed(last)) ? undefined : `the answer is\n${last}\nand not\n${json}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
