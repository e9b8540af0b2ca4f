import { describe, expect, it } from '@jest/globals';
import { decodeEvent, encodeEvent, subjectOf } from './event-message.js';

const event = {
  id: '01a1fe03-7179-7154-9db9-a918e6179bd5',
  name: 'orders.placed',
  payload: { number: 1 },
  occurredAt: '2026-11-21T12:00:00.000Z',
};
const read = (changed: object) => decodeEvent(subjectOf(event.name), JSON.stringify({ ...event, ...changed }));

describe('a message of the stream', () => {
  it('is the event that a relay wrote', () => {
    const whole = {
      ...event,
      requestId: 'r-1',
      traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    };
    expect(decodeEvent(subjectOf(event.name), encodeEvent(whole))).toEqual(whole);
  });

  it.each([
    { id: 'x' },
    { name: 'orders.other' },
    { payload: undefined },
    { occurredAt: '1' },
    { occurredAt: 'yesterday' },
    { occurredAt: '2026-13-01T00:00:00Z' },
    { payload: { text: 'a\u0000b' } },
    { payload: { text: '\\\u0000' } },
    { payload: { 'a\u0000': 1 } },
  ])('is none with %j', (changed) => expect(read(changed)).toBeUndefined());

  it('may hold the text of an escape', () => {
    const payload = { text: String.raw`\u0000`, other: String.raw`\\u0000` };
    expect(read({ payload })?.payload).toEqual(payload);
  });
});
