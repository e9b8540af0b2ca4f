import { globSync, readFileSync } from 'node:fs';

const columns = 120;
/** What only a program reads is not wrapped. */
const directive = /^\s*(?:\/\/\/|(?:\/\/|#)\s*(?:oxlint|@ts-|shellcheck|syntax=|!))/;
const commentOf = {
  slashes: /^\s*(?:\/\/|\/\*|\* )|[;,{([] \/\/ [^'"`]*$/,
  // Indented: commands to copy.
  hash: /^\s*#(?! {2})/,
};
/** Headings, tables, definitions of links and HTML stand on one line. */
const unwrapped = /^\s*(?:#{1,6} |\||\[[^\]]+\]: |<)/;
/** What stands before the words, and what has spaces and is one word nevertheless. */
const marker = /^[\s*/#>-]*(?:\d+\. )?/;
const oneWord = /`[^`]*`|\]\([^)]*\)|\{@[^}]*\}/g;

/**
 * The numbers of the lines of comments, in Markdown of prose, that are wider than 120 columns and have a place to wrap.
 */
export function wideLines(path: string, text: string): number[] {
  const isMarkdown = path.endsWith('.md');
  const comment = /\.(?:ts|tsx|js|css|jsonc)$/.test(path) ? commentOf.slashes : commentOf.hash;
  let inBlock = false;
  return text.split('\n').flatMap((line, index) => {
    if (isMarkdown && /^\s*(?:```|~~~)/.test(line)) inBlock = !inBlock;
    if ([...line].length <= columns) return [];
    const isProse = isMarkdown ? !inBlock && !unwrapped.test(line) : comment.test(line) && !directive.test(line);
    const words = line.replace(marker, '').replace(oneWord, 'word').trim();
    return isProse && words.includes(' ') ? [index + 1] : [];
  });
}

if (import.meta.main) {
  const paths = globSync([
    '*.{md,ts,js,jsonc,yml}',
    '{apps,libs,tools,docs,deploy}/**/{*.{md,ts,tsx,css,yml,sh,py,toml},Dockerfile}',
  ]);
  for (const path of paths.filter((each) => !each.includes('/generated/')).toSorted()) {
    for (const line of wideLines(path, readFileSync(path, 'utf8'))) {
      console.log(`${path}:${line}: comments and prose wrap at ${columns} columns`);
      process.exitCode = 1;
    }
  }
}
