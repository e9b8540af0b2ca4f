import ts from 'typescript';

/** Identifies the function of a file that a probe is in: the position of its body; 0: none, but the file itself. */
export type Probe = number;

/** The innermost function with a body in braces around a position. */
export function probeAt(file: ts.SourceFile, position: number): Probe {
  let found = 0;
  const visit = (node: ts.Node): void => {
    if (position < node.pos || position >= node.end) return;
    if (ts.isFunctionLike(node) && 'body' in node && node.body && ts.isBlock(node.body) && position >= node.body.pos) {
      found = node.body.getStart(file) + 1;
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** The name by which the recorder is called in code with probes. */
export const recorderName = 'atollMutantsRan';

/** The file with calls of the recorder in it: `path:probe`, as often as the function runs. */
export function withProbes(path: string, text: string, probes: Iterable<Probe>): string {
  const call = (probe: Probe) => `globalThis.${recorderName}?.(${JSON.stringify(`${path}:${probe}`)});`;
  let result = text;
  for (const probe of [...new Set(probes)].toSorted((one, other) => other - one)) {
    result = probe === 0 ? `${result}\n${call(0)}\n` : result.slice(0, probe) + call(probe) + result.slice(probe);
  }
  return result;
}
