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

/** One secret, or several while they rotate: the first signs, all verify. */
export type Secrets = string | readonly string[];

const minimumLength = 16;

/** HMAC-SHA256 of requests, under secrets that the gateway and all services share. */
export class Signer {
  readonly #keys: readonly [KeyObject, ...KeyObject[]];

  constructor(secrets: Secrets) {
    const [first, ...others] = typeof secrets === 'string' ? [secrets] : secrets;
    if (first === undefined || [first, ...others].some((secret) => secret.length < minimumLength)) {
      throw new Error(`A secret of the bus must have at least ${minimumLength} characters.`);
    }
    this.#keys = [secretKey(first), ...others.map(secretKey)];
  }

  sign(signed: Signed): string {
    return digest(this.#keys[0], signed);
  }

  /** Compares texts, not the bytes they stand for: a signature has one spelling, so that one seen before is known again. */
  verify(signed: Signed, signature: string): boolean {
    const given = Buffer.from(signature);
    return this.#keys.some((key) => {
      const expected = Buffer.from(digest(key, signed));
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
  }
}

function secretKey(secret: string): KeyObject {
  return createSecretKey(secret, 'utf8');
}

/** The lengths keep the parts apart, whatever they hold. */
function digest(key: KeyObject, { subject, reply, context, payload }: Signed): string {
  const head = `${subject.length} ${reply.length} ${context.length}\n`;
  return createHmac('sha256', key)
    .update(head + subject + reply + context + payload, 'utf8')
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
