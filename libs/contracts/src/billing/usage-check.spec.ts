import { describe, expect, it } from '@jest/globals';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { anything, assert, constantFrom, oneof, property, record, string, integer, type Arbitrary } from 'fast-check';
import { AppError } from '@atoll/errors';
import { runs } from '@atoll/testing';
import { readUsageEvents } from './usage-check.js';
import { UsageEvent } from './usage-event.js';
import { RecordUsage, UsageBatch } from './usage.js';

const good = {
  source: 'meter',
  id: 'a',
  time: '2026-10-01T00:00:00.000Z',
  resource_id: 'vm:1',
  kind: 'vm',
  sku: 'vm.small',
  quantity: '1',
  team_id: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10',
  workspace_id: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a11',
};

function faultsOf(plain: unknown): string[] {
  try {
    readUsageEvents(plain);
    return [];
  } catch (error) {
    if (error instanceof AppError && error.code === 'invalid_input')
      return (error.details.errors ?? []).map(({ path }) => path);
    throw error;
  }
}
const quantityOf = (quantity: unknown) => readUsageEvents({ events: [{ ...good, quantity }] })[0]?.quantity;

describe('a batch of facts', () => {
  it('is read as its class, ids in lower case', () => {
    const read = RecordUsage.fromWire({
      events: [{ ...good, quantity: 1, team_id: good.team_id.toUpperCase(), region_id: 7, sequence: 3 }],
    });
    expect(read).toBeInstanceOf(RecordUsage);
    expect(read.events).toEqual([{ ...good, region_id: '7', sequence: 3 }]);
    expect({ ...UsageBatch.fromWire(JSON.parse(JSON.stringify(read))) }).toEqual({ ...read });
  });

  it.each<[string, unknown]>([
    ['no object', null],
    ['a list', []],
    ['without events', {}],
    ['with no events', { events: [] }],
    ['with 1001', { events: Array.from({ length: 1001 }, () => good) }],
    ['with an object for the list', { events: { 0: good } }],
  ])('is refused as a whole: %s', (_name, plain) => expect(faultsOf(plain)).toEqual(['events']));

  it('names each fault by the index of its fact', () => {
    const { quantity: _quantity, ...missing } = good;
    const events = [
      good,
      { ...good, kind: 'gpu', sequence: 1.5 },
      missing,
      7,
      { ...good, colour: 1 },
      { ...good, sequence: '3' },
    ];
    expect(faultsOf({ events, more: 1 }).sort()).toEqual([
      'events.1.kind',
      'events.1.sequence',
      'events.2.quantity',
      'events.3',
      'events.4.colour',
      'events.5.sequence',
      'more',
    ]);
    expect(faultsOf({ events: [JSON.parse(`{"__proto__":1}`)] })).toContain('events.0.__proto__');
    expect(faultsOf({ events: Array.from({ length: 1000 }, () => ({})) })).toHaveLength(9000);
  });

  it.each([
    ['0', '0'],
    ['0.0', '0'],
    ['1.50', '1.5'],
    ['2.500000000000', '2.5'],
    ['1000000000', '1000000000'],
    ['999999999.999999999', '999999999.999999999'],
    ['1e3', '1000'],
    ['1.5E-8', '0.000000015'],
    ['25e-1', '2.5'],
    [0.1, '0.1'],
    [1e-9, '0.000000001'],
    [123.25, '123.25'],
  ])('reads the quantity %s as %s', (written, read) => expect(quantityOf(written)).toBe(read));

  it.each([
    '-0',
    '-1',
    '+1',
    '1.0000000001',
    '1e-10',
    '1000000000.000000001',
    '1000000001',
    '1e10',
    '1e99',
    '',
    ' 1',
    '0x1',
    'NaN',
    null,
    true,
    NaN,
    Infinity,
    -1,
    [1],
  ])('refuses the quantity %s', (written) =>
    expect(faultsOf({ events: [{ ...good, quantity: written }] })).toEqual(['events.0.quantity']),
  );

  it.each([
    '2026-10-01',
    '2026-10-01T00:00:00',
    '2026-02-30T00:00:00Z',
    '2026-10-01T24:00:00Z',
    '2026-10-01T00:00:00.0001Z',
    '1999-12-31T00:00:00Z',
    '2000-01-01T00:00:00+14:00',
    '1999-12-31T23:59:59.999Z',
    '1999-12-31T23:00:00-01:00',
    '9999-12-31T23:59:59-00:01',
    0,
    null,
  ])('refuses the time %s', (time) => expect(faultsOf({ events: [{ ...good, time }] })).toEqual(['events.0.time']));

  it.each(['2000-01-01T00:00:00Z', '2000-01-01T14:00:00+14:00', '9999-12-31T23:59:59.999Z'])(
    'takes the time %s, whose instant lies in the years allowed',
    (time) => expect(faultsOf({ events: [{ ...good, time }] })).toEqual([]),
  );

  it('asks for the pool of what a pool hands out', () => {
    expect(faultsOf({ events: [{ ...good, kind: 'gpuaas_pool' }] })).toEqual(['events.0.pool_id']);
    expect(faultsOf({ events: [{ ...good, kind: 'gpuaas_pool', pool_id: 7 }] })).toEqual([]);
  });

  it('takes flat attributes only', () => {
    for (const attributes of [{}, { pool_name: 'a', v_ram_gb: 10, spot: true }])
      expect(faultsOf({ events: [{ ...good, attributes }] })).toEqual([]);
    for (const attributes of [
      [],
      { a: { b: 1 } },
      { a: null },
      { 'A b': 1 },
      { a: 'x'.repeat(201) },
      'text',
      JSON.parse('{"__proto__":1}'),
    ]) {
      expect(faultsOf({ events: [{ ...good, attributes }] })).toEqual(['events.0.attributes']);
    }
  });
});

/** As fast-check's unit `binary`, which first lists all code points, for 1.5 s. */
const codePoint = oneof(integer({ min: 0, max: 0xd7ff }), integer({ min: 0xe000, max: 0x10ffff })).map((point) =>
  String.fromCodePoint(point),
);

describe('the check of a fact', () => {
  /** Fields whose decorators say all that the check says; the others are stricter or read decimals. */
  const fields = [
    'source',
    'id',
    'sequence',
    'resource_id',
    'resource_name',
    'kind',
    'sku',
    'team_id',
    'workspace_id',
    'region_id',
    'pool_id',
  ] as const;
  const value: Arbitrary<unknown> = oneof(
    constantFrom<unknown>(
      'vm',
      'pod',
      '7',
      '07',
      'a b',
      'a.b',
      '',
      ' ',
      'x'.repeat(64),
      'x'.repeat(129),
      'x'.repeat(201),
      good.team_id,
      null,
      undefined,
      1.5,
      -1,
      2 ** 53,
    ),
    string({ unit: codePoint, maxLength: 6 }),
    integer(),
    anything({ maxDepth: 1 }),
  );

  it('says what the decorators of its class say, which describe it in the OpenAPI document', () => {
    assert(
      property(constantFrom(...fields), value, (field, given) => {
        const event = { ...good, [field]: given };
        const declared = validateSync(plainToInstance(UsageEvent, event), { forbidUnknownValues: false }).some(
          (fault) => fault.property === field,
        );
        expect([field, given, faultsOf({ events: [event] }).includes(`events.0.${field}`)]).toEqual([
          field,
          given,
          declared,
        ]);
      }),
      runs(2_000),
    );
  });

  it('never fails but by a refusal', () => {
    assert(
      property(
        anything(),
        record({ events: anything() }),
        (one, other) => void [one, other, { events: [one] }].map(faultsOf),
      ),
      runs(500),
    );
  });
});
