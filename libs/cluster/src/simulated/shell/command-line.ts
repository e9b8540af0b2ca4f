/** A command of a line, with what has to hold of the one before it: `;` nothing, `&&` its success, `||` its failure. */
interface Command {
  readonly after: ';' | '&&' | '||';
  /** As they are written. `expand` gives what they mean when the command runs. */
  readonly texts: readonly string[];
}

/** The parsed line, or an error message for its user. */
export type ParsedLine = { readonly commands: readonly Command[] } | { readonly error: string };

/** Blanks, a comment, what joins commands, and words. Within a word: plain text, an escape, quotes and variables. */
const token = /\s+|#.*|&&|\|\||;|(?:[^\s;&|<>()`'"\\$]|\\.|'[^']*'|"(?:[^"\\`$]|\\.|\$(?!\())*"|\$(?!\())+/gsuy;
const part = /\\(.)|'([^']*)'|"((?:[^"\\]|\\.)*)"|\$(?:(\w+)|\{(\w+)\}|(\?))/gsu;
const quotedPart = /\\(["\\$`])|\$(?:(\w+)|\{(\w+)\}|(\?))/g;

/** The commands of a line. A simulated shell knows no pipes, redirections, jobs or substitutions. */
export function parseLine(line: string): ParsedLine {
  const commands: { after: Command['after']; texts: string[] }[] = [{ after: ';', texts: [] }];
  token.lastIndex = 0;
  for (let at = 0; at < line.length; at = token.lastIndex) {
    const [text] = token.exec(line) ?? [];
    if (text === undefined) return { error: refusalOf(line.slice(at)) };
    if (text === ';' || text === '&&' || text === '||') commands.push({ after: text, texts: [] });
    else if (!/^(?:\s|#)/.test(text)) commands.at(-1)?.texts.push(text);
  }
  return { commands: commands.filter(({ texts }) => texts.length > 0) };
}

/** A word without its quotes, with its variables replaced. `valueOf` knows `?` too. */
export function expand(text: string, valueOf: (name: string) => string): string {
  const replaced = (inside: string): string =>
    inside.replace(
      quotedPart,
      (_all, escaped?: string, ...names: (string | undefined)[]) => escaped ?? valueOf(firstOf(names)),
    );
  return text.replace(
    part,
    (_all, escaped?: string, single?: string, double?: string, ...names: (string | undefined)[]) => {
      if (double !== undefined) return replaced(double);
      return escaped ?? single ?? valueOf(firstOf(names));
    },
  );
}

/** Of groups of which one has matched. */
function firstOf(groups: readonly (string | undefined)[]): string {
  return groups.find((group) => group !== undefined) ?? '';
}

function refusalOf(rest: string): string {
  if (/^(?:'[^']*|"(?:[^"\\`$]|\\.|\$(?!\())*)$/su.test(rest)) return 'A quote is not closed.';
  return `This shell is simulated: it has no pipes, redirections, jobs or substitutions (at "${rest.slice(0, 20)}").`;
}
