import { createCipheriv, createDecipheriv, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';

const form = 'v1';
const algorithm = 'aes-256-gcm';
const keyBytes = 32;
/** NIST SP 800-38D: 96 random bits, good for 2^32 seals under one key. */
const nonceBytes = 12;
const tagBytes = 16;
const keyId = /^[A-Za-z0-9_-]{1,32}$/;
const rule = `ATOLL_SEAL_KEYS must be id:key, comma-separated, each key ${keyBytes} bytes in base64`;

/**
 * The key under the value's id does not open it, as it was altered or sealed for another purpose; or, without `keyId`,
 * it has not the form of a sealed value. Says nothing of its content.
 */
export class SealBroken extends Error {
  constructor(purpose: string, keyId?: string) {
    const reason =
      keyId === undefined
        ? 'it does not have the form of a sealed value.'
        : `ATOLL_SEAL_KEYS has another key under the id "${keyId}" than the one that sealed it, or the value was altered.`;
    super(`The sealed value for ${purpose} cannot be opened: ${reason}`);
  }
}

/** The value was sealed under a key that is no longer configured. */
export class UnknownSealKey extends Error {
  constructor(id: string) {
    super(`The value was sealed under the key "${id}", which ATOLL_SEAL_KEYS does not hold.`);
  }
}

/**
 * Encrypts secrets for rows and messages: AES-256-GCM under a key with an id, so that keys can be replaced. The text
 * that comes out is `v1.<key id>.<nonce, ciphertext and tag in base64url>`, about 4/3 of the secret and 50 characters
 * more. The form, the key id and the `purpose` are authenticated: a value that is moved to another row or column does
 * not open there.
 */
export class Sealer {
  readonly #keys: ReadonlyMap<string, KeyObject>;
  readonly #current: string;

  /**
   * `keys`: `id:base64` of 32 bytes each, comma-separated; the first seals, all open. Throws an Error that names the
   * faulty entry by its position, never its value.
   */
  constructor(keys: string) {
    if (keys === '') throw new Error(`${rule}.`);
    const entries = keys.split(',').map((text, at) => readKey(text.trim(), at + 1));
    this.#keys = new Map(entries);
    if (this.#keys.size !== entries.length) throw new Error('ATOLL_SEAL_KEYS must not name a key twice.');
    [this.#current = ''] = this.#keys.keys();
  }

  /** Makes the text of `ATOLL_SEAL_KEYS` with one new random key. */
  static createKeys(id = 'k1'): string {
    return `${id}:${randomBytes(keyBytes).toString('base64')}`;
  }

  /** `purpose` binds the value to its place, such as `gpuaas.cluster:12`; decryption needs the same. */
  seal(secret: string | Uint8Array, purpose: string): string {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv(algorithm, this.#keyOf(this.#current), nonce, { authTagLength: tagBytes });
    cipher.setAAD(boundTo(this.#current, purpose));
    const sealed = Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
    return `${form}.${this.#current}.${sealed.toString('base64url')}`;
  }

  /** Throws `SealBroken` or `UnknownSealKey`. */
  open(sealed: string, purpose: string): Buffer {
    const [version, id = '', text = '', ...rest] = sealed.split('.');
    const bytes = Buffer.from(text, 'base64url');
    if (version !== form || !keyId.test(id) || rest.length > 0 || bytes.length < nonceBytes + tagBytes)
      throw new SealBroken(purpose);
    const decipher = createDecipheriv(algorithm, this.#keyOf(id), bytes.subarray(0, nonceBytes), {
      authTagLength: tagBytes,
    });
    decipher.setAAD(boundTo(id, purpose));
    decipher.setAuthTag(bytes.subarray(-tagBytes));
    try {
      return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()]);
    } catch {
      throw new SealBroken(purpose, id);
    }
  }

  /** Prefix of every value that is sealed under the first key. Reseal other values before you remove their key. */
  get currentPrefix(): string {
    return `${form}.${this.#current}.`;
  }

  #keyOf(id: string): KeyObject {
    const key = this.#keys.get(id);
    if (!key) throw new UnknownSealKey(id);
    return key;
  }
}

function readKey(text: string, position: number): [string, KeyObject] {
  const [id = '', key = ''] = text.split(/:(.*)/s);
  const bytes = Buffer.from(key, 'base64');
  if (!keyId.test(id) || bytes.length !== keyBytes) {
    throw new Error(`${rule}; entry ${position} is not.`);
  }
  return [id, createSecretKey(bytes)];
}

function boundTo(id: string, purpose: string): Buffer {
  return Buffer.from(JSON.stringify([form, id, purpose]));
}
