import { invalidInput, type FieldError } from '@atoll/errors';
import { ExactNumber } from '../exact-number.js';
import { isLine } from '../text.js';
import { unknownField } from '../unknown-field.js';
import { aSku } from './price.js';
import { attributeName, maxAttributes, maxAttributeText, usageKinds, type UsageEvent } from './usage-event.js';

const maxUsageEvents = 1000;

/** A check of one field: returns its value, or undefined if it is not as `expected` says. */
interface Field {
  required: boolean;
  expected: string;
  read: (value: unknown) => unknown;
}

const text = (max: number): Field => ({
  required: true,
  expected: `one line of 1 to ${max} characters`,
  read: (value) => (isLine(value, max) ? value : undefined),
});
const matching = (pattern: RegExp, expected: string): Field => ({
  required: true,
  expected,
  read: (value) => (typeof value === 'string' && pattern.test(value) ? value : undefined),
});
const optional = (field: Field): Field => ({ ...field, required: false });

const uuid: Field = {
  required: true,
  expected: 'a UUID',
  read: (value) => (typeof value === 'string' && uuidForm.test(value) ? value.toLowerCase() : undefined),
};
const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const numberedId: Field = {
  required: false,
  expected: 'a positive whole number',
  read: (value) => {
    const digits = typeof value === 'number' ? String(value) : value;
    return typeof digits === 'string' && /^[1-9]\d{0,14}$/.test(digits) ? digits : undefined;
  },
};

/** A compiled form of `UsageEvent`'s decorators; a spec holds the two together. */
const fields: Record<keyof UsageEvent, Field> = {
  source: text(64),
  id: text(128),
  time: {
    required: true,
    expected: 'an ISO 8601 instant of 2000 or later, to the millisecond, such as 2026-10-01T00:00:00.000Z',
    read: readTime,
  },
  sequence: {
    required: false,
    expected: 'a whole number from 0 to 9007199254740991',
    read: readSequence,
  },
  resource_id: text(200),
  resource_name: optional(text(200)),
  kind: matching(new RegExp(`^(?:${usageKinds.join('|')})$`), `one of: ${usageKinds.join(', ')}`),
  sku: matching(new RegExp(`(?=^.{1,${aSku.max}}$)${aSku.pattern.source}`), `1 to ${aSku.max} ${aSku.patternHint}`),
  quantity: { required: true, expected: 'a number from 0 to 1000000000 with at most 9 decimals', read: readQuantity },
  team_id: uuid,
  workspace_id: uuid,
  region_id: numberedId,
  pool_id: numberedId,
  attributes: {
    required: false,
    expected: `a flat object of at most ${maxAttributes} strings of up to ${maxAttributeText} characters, numbers and booleans`,
    read: (value) => readAttributes(value),
  },
};
const ofServices = Object.entries(fields);
const ofCallers = Object.entries({ ...fields, quantity: { ...fields.quantity, read: readNumber } });
const known: ReadonlySet<string> = new Set(Object.keys(fields));

/**
 * The facts of `{events: […]}` as services tell them to each other, whose quantities are decimal text: each checked,
 * quantities without an exponent. Throws `invalid_input` that names each fault by the index of its event:
 * `events.3.quantity`.
 */
export function readUsageEvents(plain: unknown): UsageEvent[] {
  return readEvents(plain, ofServices);
}

/** The same of a request, whose quantities are numbers: doubles, or as they are written. */
export function readRequestedUsage(plain: unknown): UsageEvent[] {
  return readEvents(plain, ofCallers);
}

function readEvents(plain: unknown, entries: readonly [name: string, field: Field][]): UsageEvent[] {
  const body = plain as { events?: unknown } | null;
  const unknown =
    typeof body === 'object' && body !== null ? Object.keys(body).filter((name) => name !== 'events') : [];
  const faults: FieldError[] = unknown.map((name) => unknownField(name));
  const events = body?.events;
  if (!Array.isArray(events) || events.length === 0 || events.length > maxUsageEvents) {
    faults.push({ path: 'events', code: 'events', message: `events must be a list of 1 to ${maxUsageEvents} facts` });
    throw invalidInput(faults);
  }
  const read = events.map((event, index) => readUsageEvent(event, entries, `events.${index}`, faults));
  if (faults.length > 0) throw invalidInput(faults);
  return read;
}

/** One fact; adds to `faults` what is wrong with it. */
function readUsageEvent(
  plain: unknown,
  entries: readonly [name: string, field: Field][],
  path: string,
  faults: FieldError[],
): UsageEvent {
  const event: Record<string, unknown> = {};
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) {
    faults.push({ path, code: 'isObject', message: `${path} must be an object` });
    return event as unknown as UsageEvent;
  }
  const given = plain as Record<string, unknown>;
  for (const name of Object.keys(given)) if (!known.has(name)) faults.push(unknownField(`${path}.${name}`));
  for (const [name, { required, expected, read }] of entries) {
    const value = given[name];
    if (value === undefined && !required) continue;
    const result = read(value);
    if (result === undefined)
      faults.push({ path: `${path}.${name}`, code: name, message: `${path}.${name} must be ${expected}` });
    else event[name] = result;
  }
  if (event.kind === 'gpuaas_pool' && given.pool_id === undefined) {
    faults.push({
      path: `${path}.pool_id`,
      code: 'pool_id',
      message: `${path}.pool_id is needed for the kind gpuaas_pool`,
    });
  }
  return event as unknown as UsageEvent;
}

const [earliestMs, endMs] = [Date.UTC(2000, 0), Date.UTC(10_000, 0)];
const timeForm =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,3})?(?:Z|[+-](?:0\d|1[0-4]):[0-5]\d)$/;

function readTime(value: unknown): string | undefined {
  const [, year = '', month = '', day = ''] = (typeof value === 'string' && timeForm.exec(value)) || [];
  // Date.parse takes 30 February for 2 March.
  const isReal =
    Number(month) >= 1 &&
    Number(month) <= 12 &&
    Number(day) >= 1 &&
    Number(day) <= new Date(Date.UTC(+year, +month, 0)).getUTCDate();
  if (!isReal || year < '2000') return undefined;
  // An offset may move it out of the years that it is written in.
  const ms = Date.parse(value as string);
  return ms >= earliestMs && ms < endMs ? (value as string) : undefined;
}

function readSequence(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

const quantityForm = /^(\d{1,40})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,2}))?$/;

/** JSON's own writing of a number, exponent included; the point is moved in the text, not in a float. */
function readQuantity(value: unknown): string | undefined {
  const match = quantityForm.exec(typeof value === 'number' ? String(value) : typeof value === 'string' ? value : '');
  if (!match) return undefined;
  const [, whole = '', decimals = '', exponent = '0'] = match;
  const shift = Number(exponent);
  const digits = whole + decimals;
  const point = whole.length + shift;
  const padded = point <= 0 ? '0'.repeat(1 - point) + digits : digits.padEnd(point, '0');
  const at = Math.max(point, 1);
  const units = padded.slice(0, at).replace(/^0+(?=\d)/, '');
  const fraction = padded.slice(at).replace(/0+$/, '');
  const isTooMuch = units.length > 10 || (units.length === 10 && (units !== '1000000000' || fraction !== ''));
  if (fraction.length > 9 || isTooMuch) return undefined;
  return fraction ? `${units}.${fraction}` : units;
}

function readNumber(value: unknown): string | undefined {
  if (value instanceof ExactNumber) return readQuantity(value.text);
  return typeof value === 'number' ? readQuantity(value) : undefined;
}

/** One of them may have the name of a number that is kept as it is written. */
function readAttributes(value: unknown): unknown {
  const { quantity } = (value ?? {}) as { quantity?: unknown };
  const attributes =
    quantity instanceof ExactNumber ? { ...(value as object), quantity: Number(quantity.text) } : value;
  return isAttributes(attributes) ? attributes : undefined;
}

function isAttributes(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const attributes = Object.entries(value);
  return (
    attributes.length <= maxAttributes &&
    attributes.every(([name, entry]) => attributeName.test(name) && isAttribute(entry))
  );
}

function isAttribute(value: unknown): boolean {
  return (
    typeof value === 'boolean' ||
    (typeof value === 'number' && Number.isFinite(value)) ||
    isLine(value, maxAttributeText)
  );
}
