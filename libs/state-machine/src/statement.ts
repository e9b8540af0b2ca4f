/** The text of a statement and the values of its parameters. */
export interface Statement {
  readonly text: string;
  readonly values: unknown[];
}

/** By the names of parameters: what stands for each in the text, `$1` and so on. */
export type Places<Given> = { readonly [Name in keyof Given]: string };

/** A statement with these parameters, all of which stand in its text. */
export function statement<Given extends object>(given: Given, textOf: (at: Places<Given>) => string): Statement {
  const { add, values } = parameters();
  const at = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, add(value)]));
  return { text: textOf(at as Places<Given>), values };
}

/** For a text whose parameters depend on what is given: `add` keeps a value and returns what stands for it. */
export function parameters(): { readonly add: (value: unknown) => string; readonly values: unknown[] } {
  const values: unknown[] = [];
  return { add: (value) => `$${values.push(value)}`, values };
}
