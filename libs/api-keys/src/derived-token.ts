import { createHmac, timingSafeEqual } from 'node:crypto';
import { derivedKey } from './derived-key.js';

const idHex = /^[0-9a-f]{32}$/;

/**
 * Tokens that are derived from a row and stored nowhere: `<id>.<generation>.<MAC>`. The MAC is HMAC-SHA-256 under
 * `derivedKey` of their purpose. Access to the database is not enough to create one.
 */
export class DerivedTokens {
  readonly #key: Buffer;

  /** `purpose` keeps tokens of one kind from being taken for another. */
  constructor(pepper: string, purpose: string) {
    this.#key = derivedKey(pepper, purpose);
  }

  /** The token of a row, by its UUID and the number of the token among those of the row. */
  make(id: string, generation = 1): string {
    const named = `${id.replaceAll('-', '')}.${generation}`;
    return `${named}.${this.#mac(named).toString('base64url')}`;
  }

  /** Undefined for what this server never made. */
  read(token: string): { id: string; generation: number } | undefined {
    const [hex = '', number = '', mac = '', ...rest] = token.split('.');
    if (!idHex.test(hex) || !/^[1-9]\d{0,8}$/.test(number) || rest.length > 0) return undefined;
    const expected = Buffer.from(this.#mac(`${hex}.${number}`).toString('base64url'));
    // As bytes: of a text with other characters than a MAC has, there are more.
    const given = Buffer.from(mac);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    return { id, generation: Number(number) };
  }

  #mac(text: string): Buffer {
    return createHmac('sha256', this.#key).update(text).digest();
  }
}

/** The refresh tokens of sessions: the teams service makes them, and the gateway knows an invented one by itself. */
export function refreshTokensOf(pepper: string): DerivedTokens {
  return new DerivedTokens(pepper, 'refresh token');
}
