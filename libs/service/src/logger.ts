import { redactSecrets } from '@atoll/errors';
import type { LoggerService } from '@nestjs/common';
import { pino, type DestinationStream, type Logger } from 'pino';

const bufferedBytes = 8 * 1024;
const flushAfterMs = 100;

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** A safety net: nothing logs these fields on purpose. */
const secretFields = [
  'authorization',
  '["x-api-key"]',
  'cookie',
  'api_key',
  'apiKey',
  'password',
  'ssh_password',
  'private_key',
  'passphrase',
  'access_token',
  'credential',
];
const redactedPaths = secretFields.flatMap((name) => [
  name,
  name.startsWith('[') ? `*${name}` : `*.${name}`,
  name.startsWith('[') ? `*.*${name}` : `*.*.${name}`,
]);

/**
 * Written in one go for many lines, a tenth of a second late at most; what is left goes out as the process ends. Where
 * nobody reads it any more, `flushSync` would try for ever, so `flush` goes before it: by that pino notices, and makes
 * `flushSync` do nothing.
 */
function standardOutput(): DestinationStream {
  const output = pino.destination({ dest: 1, sync: true, minLength: bufferedBytes });
  let due: NodeJS.Timeout | undefined;
  const flush = () => {
    due = undefined;
    output.flush();
  };
  process.once('exit', () => {
    output.flush();
    output.flushSync();
  });
  return {
    write: (line) => {
      output.write(line);
      // A process that says nothing is not woken for it.
      due ??= setTimeout(flush, flushAfterMs).unref();
    },
  };
}

/**
 * Structured logs, a JSON object a line, on standard output unless told otherwise. Secrets are redacted by field name
 * and by form.
 */
export function createLogger(options: { service: string; level?: LogLevel; destination?: DestinationStream }): Logger {
  const { service, level = 'info', destination } = options;
  const settings = {
    level,
    base: { service, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: redactedPaths, censor: '[redacted]' },
    hooks: { streamWrite: redactSecrets },
  };
  return pino(settings, destination ?? standardOutput());
}

const nestContexts: ReadonlySet<string> = new Set([
  'InstanceLoader',
  'NestApplication',
  'NestFactory',
  'NestMicroservice',
  'RouterExplorer',
  'RoutesResolver',
]);

/**
 * Nest's own log lines through the process's logger. The last of Nest's parameters is the context's name, the one
 * before it a stack.
 */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  /** Nest's own start-up lines at this level are noise for an operator; those of services are not. */
  log(message: unknown, ...parameters: unknown[]): void {
    this.write(nestContexts.has(String(parameters.at(-1))) ? 'debug' : 'info', message, parameters);
  }

  warn(message: unknown, ...parameters: unknown[]): void {
    this.write('warn', message, parameters);
  }

  /**
   * An error that prevents the start is also thrown, and the entry point prints it in one sentence; its stack is for
   * debugging.
   */
  error(message: unknown, ...parameters: unknown[]): void {
    this.write(parameters.at(-1) === 'ExceptionHandler' ? 'debug' : 'error', message, parameters);
  }

  fatal(message: unknown, ...parameters: unknown[]): void {
    this.write('fatal', message, parameters);
  }

  debug(message: unknown, ...parameters: unknown[]): void {
    this.write('debug', message, parameters);
  }

  private write(level: 'debug' | 'info' | 'warn' | 'error' | 'fatal', message: unknown, parameters: unknown[]): void {
    const context = typeof parameters.at(-1) === 'string' ? (parameters.at(-1) as string) : undefined;
    const details = parameters
      .slice(0, context === undefined ? undefined : -1)
      .filter((parameter) => parameter !== undefined);
    const { text, fields } = read(message);
    this.logger[level]({ ...fields, ...(context && { context }), ...(details.length > 0 && { details }) }, text);
  }
}

/** A text, an error, or a text with fields of its own beside it: `{ message, request_id }`. */
function read(message: unknown): { text: string; fields?: object } {
  if (typeof message === 'string') return { text: message };
  if (message instanceof Error) return { text: message.message, fields: { err: message } };
  if (typeof message !== 'object' || message === null || !('message' in message))
    return { text: JSON.stringify(message) };
  const { message: text, ...fields } = message;
  return { text: String(text), fields };
}
