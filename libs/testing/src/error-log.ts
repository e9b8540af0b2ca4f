import type { LoggerService } from '@nestjs/common';

/** Lines that the code under test has logged as error or fatal, and the patterns that the running spec expects. */
interface ErrorLog {
  lines: string[];
  expected: RegExp[];
  allowed: RegExp[];
}

const key = Symbol.for('atoll.error-log');
const home = globalThis as { [key]?: ErrorLog };
/** One for all module instances of a spec file. */
const errorLog = (home[key] ??= { lines: [], expected: [], allowed: [] });

/**
 * Nest's logger in specs. It shows nothing; lines logged as error or fatal fail the running spec unless `expectErrors`
 * names them.
 */
export const specLogger: LoggerService = {
  log: () => undefined,
  warn: () => undefined,
  debug: () => undefined,
  verbose: () => undefined,
  error: (...words: unknown[]) => recordError(words),
  fatal: (...words: unknown[]) => recordError(words),
};

/** For loggers that are not Nest's: a line at level error or fatal. */
export function recordError(words: unknown): void {
  errorLog.lines.push((Array.isArray(words) ? words : [words]).map(textOf).filter(Boolean).join(' '));
}

function textOf(word: unknown): string {
  if (word instanceof Error) return String(word);
  return typeof word === 'string' ? word : JSON.stringify(word);
}

/** The running spec causes these error lines: each pattern must match a line by its end, and each line a pattern. */
export function expectErrors(...patterns: RegExp[]): void {
  errorLog.expected.push(...patterns);
}

/** The running spec may cause these error lines, as a crash at an arbitrary moment does. */
export function allowErrors(...patterns: RegExp[]): void {
  errorLog.allowed.push(...patterns);
}

/** What is wrong with the error log at the end of a spec, in sentences; begins a new one. */
export function takeErrorFaults(): string[] {
  const { lines, expected, allowed } = errorLog;
  const unexpected = lines.filter((line) => ![...expected, ...allowed].some((pattern) => pattern.test(line)));
  const missing = expected.filter((pattern) => !lines.some((line) => pattern.test(line)));
  errorLog.lines = [];
  errorLog.expected = [];
  errorLog.allowed = [];
  return [
    ...unexpected.map((line) => `Logged as error, and not expected: ${line}`),
    ...missing.map((pattern) => `Expected in the error log, and not there: ${pattern}`),
  ];
}
