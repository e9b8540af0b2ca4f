import { createHash } from 'node:crypto';

/** Texts that are remembered, and statements that one connection keeps prepared for transactions, at most. */
const mostTexts = 2_000;
const mostPrepared = 200;

/** Text → its name, or null where a transaction has sent it once. */
const names = new Map<string, string | null>();
/** Part of each name, so that all connections of the process leave plans that are out of date behind. */
let generation = 0;

/** The name by which PostgreSQL knows the statement of this text, on each connection of this process. */
export function nameOf(text: string): string {
  return `${generation}.${names.get(text) ?? remember(text, digestOf(text))}`;
}

/**
 * Which statements of transactions one connection has PostgreSQL keep, so that it parses and plans them once: those
 * that this process sends again and again. Texts without end (a list written into the text) cannot fill the server's
 * memory.
 */
export class StatementNames {
  private readonly prepared = new Set<string>();
  private since = generation;

  /** Undefined for a statement that is to be sent as it is. */
  nameOf(text: string): string | undefined {
    if (this.since !== generation) {
      this.since = generation;
      this.prepared.clear();
    }
    if (!names.has(text)) {
      remember(text, null);
      return undefined;
    }
    const name = nameOf(text);
    if (!this.prepared.has(name) && this.prepared.size >= mostPrepared) return undefined;
    this.prepared.add(name);
    return name;
  }
}

function remember<Name extends string | null>(text: string, name: Name): Name {
  if (names.size >= mostTexts && !names.has(text)) names.clear();
  names.set(text, name);
  return name;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** All statements of this process are prepared anew, because a migration has changed what some of them return. */
export function prepareAnew(): void {
  generation += 1;
}
