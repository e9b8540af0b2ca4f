import { createHash } from 'node:crypto';

/** Texts that are remembered, and statements that one connection keeps prepared, at most. */
const mostTexts = 2_000;
const mostPrepared = 200;

/** Text → its name, or null where it was sent once. */
const names = new Map<string, string | null>();
/** Part of each name, so that all connections of the process leave plans that are out of date behind. */
let generation = 0;

/**
 * Which statements one connection has PostgreSQL keep, so that it parses and plans them once: those that this process
 * sends again and again. Texts without end (a list written into the text) cannot fill the server's memory.
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
    const name = nameOf(text);
    if (name === undefined || (!this.prepared.has(name) && this.prepared.size >= mostPrepared)) return undefined;
    this.prepared.add(name);
    return `${generation}.${name}`;
  }
}

function nameOf(text: string): string | undefined {
  const known = names.get(text);
  if (known) return known;
  if (names.size >= mostTexts && known === undefined) names.clear();
  if (known === undefined) {
    names.set(text, null);
    return undefined;
  }
  const name = createHash('sha256').update(text).digest('base64url').slice(0, 22);
  names.set(text, name);
  return name;
}

/** All statements of this process are prepared anew, because a migration has changed what some of them return. */
export function prepareAnew(): void {
  generation += 1;
}
