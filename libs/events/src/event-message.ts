import type { DomainEvent } from './courier.js';

const prefix = 'events.';
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z$/;
/** U+0000 as JSON writes it; behind an even number of backslashes, or it is the text of those six characters. */
const nul = /(?<!\\)(?:\\\\)*\\u0000/;

/** `events.<service>.<name>`: the name of an event begins with its service. */
export function subjectOf(eventName: string): string {
  return prefix + eventName;
}

/** Every subject of every event. */
export const allSubjects = `${prefix}>`;

/** The narrowest single filter that lets all these events through: servers before 2.10 take one filter a consumer. */
export function filterOf(eventNames: readonly string[]): string {
  const [first = '', ...others] = eventNames;
  if (others.length === 0) return subjectOf(first);
  const services = new Set(eventNames.map((name) => name.split('.', 1)[0]));
  return services.size === 1 ? `${prefix}${[...services].join('')}.>` : allSubjects;
}

export function encodeEvent(event: DomainEvent): string {
  return JSON.stringify(event);
}

/** The event that a relay published under this subject; undefined for any other message. */
export function decodeEvent(subject: string, text: string): DomainEvent | undefined {
  let event: Partial<Record<keyof DomainEvent, unknown>>;
  try {
    event = Object(JSON.parse(text)) as typeof event;
  } catch {
    return undefined;
  }
  const { id, name, payload, occurredAt, requestId, traceparent, publisher, position, previous } = event;
  if (typeof id !== 'string' || !uuid.test(id) || typeof name !== 'string' || subjectOf(name) !== subject)
    return undefined;
  if (
    typeof occurredAt !== 'string' ||
    !instant.test(occurredAt) ||
    Number.isNaN(Date.parse(occurredAt)) ||
    payload === undefined
  ) {
    return undefined;
  }
  // PostgreSQL can hold it nowhere, not even among the dead letters.
  if (nul.test(text)) return undefined;
  return {
    id,
    name,
    payload,
    occurredAt,
    ...(typeof requestId === 'string' && { requestId }),
    ...(typeof traceparent === 'string' && { traceparent }),
    ...(typeof publisher === 'string' && { publisher }),
    ...(isPosition(position) && isPosition(previous) && previous < position && { position, previous }),
  };
}

function isPosition(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
