export interface Choice<Value extends string = string> {
  value: Value;
  label: string;
  detail?: string;
}

/** The most entries of a list that are rendered: each key pressed in a list takes time for all of its entries. */
export const mostShown = 100;

/** Without accents and case. */
export function folded(text: string): string {
  return text.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase();
}

/**
 * The choices whose label or detail contains what was typed, at most `mostShown`, and how many more do. The best come
 * first: labels that are what was typed, then labels that begin with it. While nothing is typed, all match, and the
 * choice whose value is `chosen` is among those shown.
 */
export function bestMatches<Entry extends Choice>(
  choices: readonly Entry[],
  typed = '',
  chosen?: string,
): { shown: readonly Entry[]; more: number } {
  const sought = folded(typed.trim());
  const matches = sought === '' ? withinShown(choices, chosen) : ranked(choices, sought);
  return { shown: matches.slice(0, mostShown), more: Math.max(0, matches.length - mostShown) };
}

/** Moves the chosen one to the front if it would not be shown. */
function withinShown<Entry extends Choice>(choices: readonly Entry[], chosen: string | undefined): readonly Entry[] {
  const at = choices.findIndex(({ value }) => value === chosen);
  const choice = choices[at];
  return choice === undefined || at < mostShown ? choices : [choice, ...choices.toSpliced(at, 1)];
}

function ranked<Entry extends Choice>(choices: readonly Entry[], sought: string): readonly Entry[] {
  const [same, begin, contain]: [Entry[], Entry[], Entry[]] = [[], [], []];
  for (const choice of choices) {
    const label = folded(choice.label);
    if (label === sought) same.push(choice);
    else if (label.startsWith(sought)) begin.push(choice);
    else if (`${label} ${folded(choice.detail ?? '')}`.includes(sought)) contain.push(choice);
  }
  return [...same, ...begin, ...contain];
}
