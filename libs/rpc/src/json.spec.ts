import { describe, expect, it } from '@jest/globals';
import { assert, jsonValue, property } from 'fast-check';
import { contract, operation } from '@atoll/contracts';
import type { Handlers } from './handle.js';
import { Json } from './json.js';
import { encode } from './wire.js';

class Range {
  start!: string;
}
class Bill {
  total!: string;
  days!: number[];
  note?: string;
}
class Other {
  days!: number[];
}
const bills = contract('billing', { get: operation(Range, Bill) });

describe('JSON that is written already', () => {
  it('goes over the wire as it is, alone and as a part of others', () => {
    const days = new Json<number[]>('[1,2.50]');
    expect(encode(days)).toBe('[1,2.50]');
    expect(encode(Json.object<Bill>({ total: '1"', days }))).toBe('{"total":"1\\"","days":[1,2.50]}');
    expect(encode(Json.list([new Json('1'), new Json('{}')]))).toBe('[1,{}]');
    expect([Json.list([]).text, Json.object({}).text]).toEqual(['[]', '{}']);
  });

  it('is of an object what JSON.stringify makes of it', () => {
    assert(
      property(jsonValue(), jsonValue(), (some, more) => {
        const fields = { some, more, none: undefined, '"': null };
        expect(Json.object(fields).text).toBe(JSON.stringify(fields));
      }),
    );
  });

  it('answers an operation only where it is JSON of what the operation answers', () => {
    class Whole implements Handlers<typeof bills> {
      get(): Promise<Json<Bill>> {
        return Promise.resolve(Json.object<Bill>({ total: '0', days: new Json<number[]>('[]') }));
      }
    }
    class Wrong implements Handlers<typeof bills> {
      // @ts-expect-error -- JSON of another class
      get(): Promise<Json<Other>> {
        return Promise.resolve(new Json<Other>('{}'));
      }
    }
    expect([Whole, Wrong]).toBeDefined();
    expect(bills.get.output).toBe(Bill);
  });
});
