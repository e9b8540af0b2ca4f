import { createHmac, createSecretKey, timingSafeEqual, type KeyObject } from 'node:crypto';

/** The parts of a request that a signature covers: everything but the signature itself. */
export interface Signed {
  subject: string;
  /** Reply inbox, so that a copy of the request cannot send the answer elsewhere. Empty for a broadcast. */
  reply: string;
  /** The JSON of the call's context, as it travels. */
  context: string;
  payload: string;
}

/** The parts of one message of an answer that its signature covers, beside its payload. */
export interface SignedAnswer {
  /** The service that answers: the owner of the operation. */
  service: string;
  /** `error` for a WireError, else `json`. */
  kind: AnswerKind;
  /** Number of this part and of all parts, `2/3`; `1/1` for an answer in one message. */
  part: string;
  /** Subject on which the sender waits for a receipt of this part; empty where it does not. */
  reply: string;
  /**
   * Signature of the part before this one, and of the request for the first part: it binds all parts to their request,
   * in order.
   */
  previous: string;
}

export type AnswerKind = 'json' | 'error';

/** The parts of an event that its signature covers, beside its text. */
export interface SignedEvent {
  /** The service that publishes it. */
  publisher: string;
  subject: string;
}

/** One secret, or several while they rotate: the first signs, all verify. */
export type Secrets = string | readonly string[];

const minimumLength = 16;
const secretsRule = `ATOLL_BUS_SECRET must be one or more secrets of at least ${minimumLength} characters, separated by commas`;

/**
 * Reads the text of `ATOLL_BUS_SECRET`, secrets separated by commas: the first signs, all verify. Throws an Error that
 * names the faulty entry by its position, never its value.
 */
export function parseSecrets(text: string): string[] {
  if (text === '') throw new Error(`${secretsRule}.`);
  const secrets = text.split(',').map((secret) => secret.trim());
  const faulty = secrets.findIndex((secret) => secret.length < minimumLength);
  if (faulty !== -1) throw new Error(`${secretsRule}; entry ${faulty + 1} is not.`);
  return secrets;
}

/** HMAC-SHA256 (RFC 2104) of requests, answers and events, under secrets that the gateway and all services share. */
export class Signer {
  /**
   * Tells the secrets apart without giving them away: the one that signs first, then the others. Part of the subjects
   * of requests.
   */
  readonly fingerprints: readonly [string, ...string[]];
  readonly #keys: readonly [KeyObject, ...KeyObject[]];

  constructor(secrets: Secrets) {
    const [first, ...others] = typeof secrets === 'string' ? [secrets] : secrets;
    if (first === undefined || [first, ...others].some((secret) => secret.length < minimumLength)) {
      throw new Error(`A secret of the bus must have at least ${minimumLength} characters.`);
    }
    this.#keys = [secretKey(first), ...others.map(secretKey)];
    this.fingerprints = [fingerprint(this.#keys[0]), ...this.#keys.slice(1).map(fingerprint)];
  }

  sign(signed: Signed): string {
    return digest(this.#keys[0], signed);
  }

  verify(signed: Signed, signature: string): boolean {
    return this.#matches(signature, (key) => digest(key, signed));
  }

  /** Signs one message of an answer. */
  signAnswer(signed: SignedAnswer, payload: Uint8Array): string {
    return digestAnswer(this.#keys[0], signed, payload);
  }

  verifyAnswer(signed: SignedAnswer, payload: Uint8Array, signature: string): boolean {
    return this.#matches(signature, (key) => digestAnswer(key, signed, payload));
  }

  /** Signs an event for as long as the secret is in use. */
  signEvent(signed: SignedEvent, text: string): string {
    return digestEvent(this.#keys[0], signed, text);
  }

  verifyEvent(signed: SignedEvent, text: string, signature: string): boolean {
    return this.#matches(signature, (key) => digestEvent(key, signed, text));
  }

  /**
   * Compares texts, not the bytes they stand for: a signature has one spelling, so that one seen before is known again.
   */
  #matches(signature: string, digestUnder: (key: KeyObject) => string): boolean {
    const given = Buffer.from(signature);
    return this.#keys.some((key) => {
      const expected = Buffer.from(digestUnder(key));
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
  }
}

function secretKey(secret: string): KeyObject {
  return createSecretKey(secret, 'utf8');
}

/** 72 bits, in letters that a subject may have. */
function fingerprint(key: KeyObject): string {
  return createHmac('sha256', key).update('fingerprint').digest('base64url').slice(0, 12);
}

/** The lengths keep the parts apart, whatever they hold. */
function digest(key: KeyObject, { subject, reply, context, payload }: Signed): string {
  const head = `${subject.length} ${reply.length} ${context.length}\n`;
  return createHmac('sha256', key)
    .update(head + subject + reply + context + payload, 'utf8')
    .digest('base64url');
}

/**
 * Begins with a word where a request begins with a digit: no signature of a request is one of an answer. JSON keeps the
 * parts apart.
 */
function digestAnswer(
  key: KeyObject,
  { service, kind, part, reply, previous }: SignedAnswer,
  payload: Uint8Array,
): string {
  return createHmac('sha256', key)
    .update(`answer ${JSON.stringify([service, kind, part, reply, previous])}\n`, 'utf8')
    .update(payload)
    .digest('base64url');
}

/** Begins with another word than answers do. */
function digestEvent(key: KeyObject, { publisher, subject }: SignedEvent, text: string): string {
  return createHmac('sha256', key)
    .update(`event ${JSON.stringify([publisher, subject])}\n`, 'utf8')
    .update(text, 'utf8')
    .digest('base64url');
}

/** Signatures that were already used, forgotten at their deadlines, when the deadline itself refuses them. */
export class SeenSignatures {
  readonly #byDeadlineSecond = new Map<number, Set<string>>();
  #sweptSecond = 0;

  /** False if this signature was here before. */
  add(signature: string, deadlineAtMs: number, nowMs = Date.now()): boolean {
    this.#sweep(Math.floor(nowMs / 1000));
    const second = Math.floor(deadlineAtMs / 1000);
    const seen = this.#byDeadlineSecond.get(second);
    if (!seen) {
      this.#byDeadlineSecond.set(second, new Set([signature]));
      return true;
    }
    if (seen.has(signature)) return false;
    seen.add(signature);
    return true;
  }

  get size(): number {
    return [...this.#byDeadlineSecond.values()].reduce((sum, seen) => sum + seen.size, 0);
  }

  #sweep(second: number): void {
    if (second === this.#sweptSecond) return;
    this.#sweptSecond = second;
    for (const deadlineSecond of this.#byDeadlineSecond.keys()) {
      if (deadlineSecond < second) this.#byDeadlineSecond.delete(deadlineSecond);
    }
  }
}
