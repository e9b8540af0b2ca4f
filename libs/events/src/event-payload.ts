import { validateWire, type Wire, type WireRules } from '@atoll/contracts';
import { isAppError } from '@atoll/errors';

/** The payload does not match its class. Names the fields, but not their values. */
export class InvalidPayload extends Error {
  override readonly name = 'InvalidPayload';
}

/** The limit of NATS is 1 MiB; the rest is room for headers. */
const maxPayloadBytes = 960 * 1024;

/**
 * An escape of U+0000 or of half a surrogate pair, which PostgreSQL's jsonb refuses: a backslash that is not itself
 * escaped, and the code.
 */
const unstorable = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;

/**
 * The JSON of a payload. Throws `InvalidPayload` for what is no JSON, does not fit its class, has other fields, or is
 * larger than 960 KiB.
 */
export function writePayload<Payload extends object>(type: Wire<Payload>, payload: Payload): string {
  let json: string;
  try {
    json = JSON.stringify(payload);
  } catch (error) {
    throw new InvalidPayload('The payload has no JSON.', { cause: error });
  }
  if (unstorable.test(json)) throw new InvalidPayload('The payload contains U+0000 or an unpaired surrogate.');
  if (Buffer.byteLength(json) > maxPayloadBytes)
    throw new InvalidPayload(`The payload is larger than ${maxPayloadBytes} bytes.`);
  check(type, JSON.parse(json), {});
  return json;
}

/**
 * The payload as an instance of its class. Fields that the class does not know are left out: a newer publisher may send
 * more.
 */
export function readPayload<Payload extends object>(type: Wire<Payload>, plain: unknown): Payload {
  return check(type, plain, { unknownFields: 'omit' });
}

function check<Payload extends object>(type: Wire<Payload>, plain: unknown, rules: WireRules): Payload {
  try {
    return validateWire(type, plain, rules);
  } catch (error) {
    if (!isAppError(error)) throw error;
    const faults = (error.toWire().errors ?? []).map(({ path, code }) => `${path} ${code}`.trimStart());
    throw new InvalidPayload(`The payload is not a ${type.name}: ${faults.join(', ')}.`);
  }
}
