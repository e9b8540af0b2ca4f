/**
 * Characters that text does not have: those that PostgreSQL cannot store (U+0000), control characters, and changes of
 * direction, which show one thing and say another. Written for a character class of any dialect of regular expressions.
 */
const barredInLine = String.raw`\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069`;
const barredInLines = String.raw`\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069`;
/** White space, and the characters below U+10000 that a reader does not see: Unicode’s Default_Ignorable_Code_Point. */
const unseen =
  String.raw`\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f` +
  String.raw`\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8`;

/** The pattern of text for the OpenAPI document: nothing barred and, unless it may be blank, something that shows. */
export function textPattern(lines: 'one' | 'many', mayBeBlank: boolean): string {
  const barred = lines === 'one' ? barredInLine : barredInLines;
  return mayBeBlank ? `^[^${barred}]*$` : `^[^${barred}]*[^${barred}${unseen}][^${barred}]*$`;
}

/** Default patterns of text fields in requests. Fields of responses need none. */
export const textPatterns: ReadonlySet<string> = new Set(
  (['one', 'many'] as const).flatMap((lines) => [textPattern(lines, true), textPattern(lines, false)]),
);

/** The pattern of one line that is not blank. */
export const linePattern = textPattern('one', false);

export const oneLine = new RegExp(textPattern('one', true), 'u');
export const manyLines = new RegExp(textPattern('many', true), 'u');
export const wellFormed = /^\P{Cs}*$/u;
/** As `unseen`, and beyond U+FFFF, which few dialects of regular expressions write alike. */
export const notBlank = /[^\s\u2800\p{Default_Ignorable_Code_Point}]/u;

/** Whether a value is text as `Text({ max })` has it, for bulk checks. */
export function isLine(value: unknown, max: number): value is string {
  return (
    typeof value === 'string' &&
    hasAtMost(max, value) &&
    notBlank.test(value) &&
    oneLine.test(value) &&
    wellFormed.test(value)
  );
}

/** Characters, not UTF-16 units: JSON Schema counts so. */
function hasAtMost(max: number, text: string): boolean {
  return text.length <= max || (text.length <= 2 * max && [...text].length <= max);
}

/** Group of the transformations that apply only to text input: `WireRules.isText`. */
export const textGroup = 'text';
