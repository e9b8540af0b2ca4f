import { plainToInstance } from 'class-transformer';
import { validateSync, type ValidationError } from 'class-validator';
import type { Wire } from '@atoll/contracts';

/** The payload is not what its class says. Names the fields, and none of their values. */
export class InvalidPayload extends Error {
  override readonly name = 'InvalidPayload';
}

/** The limit of NATS is 1 MiB; the rest is room for what travels beside the payload. */
const maxPayloadBytes = 960 * 1024;

/** An escape of U+0000 or of half a surrogate pair, which PostgreSQL's jsonb refuses: a backslash that is not itself escaped, and the code. */
const unstorable = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;

/** The JSON of a payload. Throws `InvalidPayload` for what is no JSON, does not fit its class, has other fields, or is larger than 960 KiB. */
export function writePayload<Payload extends object>(type: Wire<Payload>, payload: Payload): string {
  let json: string;
  try {
    json = JSON.stringify(payload);
  } catch (error) {
    throw new InvalidPayload('The payload has no JSON.', { cause: error });
  }
  if (unstorable.test(json)) throw new InvalidPayload('The payload holds U+0000 or half a surrogate pair.');
  if (Buffer.byteLength(json) > maxPayloadBytes) throw new InvalidPayload(`The payload is larger than ${maxPayloadBytes} bytes.`);
  check(type, JSON.parse(json), { forbidNonWhitelisted: true });
  return json;
}

/** The payload as an instance of its class. Fields that the class does not know are left out: a newer publisher may send more. */
export function readPayload<Payload extends object>(type: Wire<Payload>, plain: unknown): Payload {
  return check(type, plain, {});
}

function check<Payload extends object>(type: Wire<Payload>, plain: unknown, options: { forbidNonWhitelisted?: boolean }): Payload {
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) throw new InvalidPayload('The payload is not a JSON object.');
  const payload = plainToInstance(type, plain);
  const faults = validateSync(payload, { whitelist: true, forbidUnknownValues: false, ...options });
  if (faults.length > 0)
    throw new InvalidPayload(`The payload is not a ${type.name}: ${faults.flatMap((fault) => rulesBroken(fault)).join(', ')}.`);
  return payload;
}

function rulesBroken(fault: ValidationError, parent = ''): string[] {
  const path = `${parent}${fault.property}`;
  const own = Object.keys(fault.constraints ?? {}).map((rule) => `${path} ${rule}`);
  return [...own, ...(fault.children ?? []).flatMap((child) => rulesBroken(child, `${path}.`))];
}
