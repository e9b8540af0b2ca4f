import { describe, expect, it } from '@jest/globals';
import { IsInt, IsObject, IsOptional } from 'class-validator';
import { anything, assert, constantFrom, property } from 'fast-check';
import { AppError } from '@atoll/errors';
import type { Wire } from './contract.js';
import { field, Flag, ListOf, Nested, Text, WholeNumber } from './fields.js';
import { validateWire, type WireRules } from './validate-wire.js';

let membersMade = 0;

class Member {
  constructor() {
    membersMade += 1;
  }

  @Text({ max: 5 })
  name!: string;
}

class Team {
  @Text({ max: 5 })
  name!: string;

  @WholeNumber({ optional: true, min: 1, max: 9 })
  page?: number;

  @Flag({ optional: true, nullable: true })
  open?: boolean | null;

  @ListOf(() => Member, { optional: true, max: 2 })
  members?: Member[];

  @Nested(() => Member, { optional: true })
  owner?: Member;

  @field({ optional: true }, { type: 'object', additionalProperties: true }, IsObject())
  details?: object;

  @IsOptional()
  @IsInt({ each: true })
  counts?: number[];

  @ListOf(() => Team, { optional: true, max: 1 })
  teams?: Team[];
}

class Counts {
  @IsInt({ each: true })
  counts!: number[];
}

function refusal(plain: unknown, rules: WireRules = {}): AppError {
  try {
    validateWire(Team, plain, rules);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('It was taken.');
}
const faults = (plain: unknown, rules: WireRules = {}) =>
  refusal(plain, rules).details.errors?.map(({ path, code }) => `${path}:${code}`);
/** How fields may be treated that the class does not have. */
const everyMode: readonly WireRules[] = [{}, { unknownFields: 'omit' }];

describe('what comes over the wire', () => {
  it('becomes an instance of its class, nested ones too', () => {
    const team = validateWire(Team, { name: 'a', page: 3, open: null, members: [{ name: 'b' }] });
    expect(team).toBeInstanceOf(Team);
    expect(team.members?.[0]).toBeInstanceOf(Member);
    expect(team).toEqual({ name: 'a', page: 3, open: null, members: [{ name: 'b' }] });
    expect(validateWire(Team, { name: 'a', counts: [1, 2] })).toEqual({ name: 'a', counts: [1, 2] });
    expect(faults({ name: 'a', counts: [1, {}] })).toEqual(['counts:isInt']);
  });

  it('has numbers for whole numbers; what is text, as a query, has their digits, which are read', () => {
    expect(faults({ name: 'a', page: '3' })).toEqual(['page:isInt']);
    expect(validateWire(Team, { name: 'a', page: '3' }, { isText: true })).toEqual({ name: 'a', page: 3 });
  });

  it('is refused with one fault a field: path, code and a sentence', () => {
    expect(refusal({ name: 'much too long' }).toWire()).toEqual({
      code: 'invalid_input',
      message: 'name must be shorter than or equal to 5 characters.',
      errors: [{ path: 'name', code: 'maxLength', message: 'name must be shorter than or equal to 5 characters' }],
    });
    expect(refusal({ name: 1, page: 0 }).message).toBe('name must be a string (the first of 2 faults).');
    const missing = refusal({ members: [{}] });
    expect(missing.message).toBe('name is missing: it must be a string (the first of 2 faults).');
    expect(missing.details.errors?.[1]).toEqual({
      path: 'members.0.name',
      code: 'isString',
      message: 'name is missing: it must be a string',
    });
    expect(refusal({ name: null }).message).toBe('name must be a string.');
    expect(() => validateWire(Counts, {})).toThrow('each value in counts must be an integer number');
    expect(faults({ name: 'a', members: [{ name: 'b' }, { name: 'much too long' }] })).toEqual([
      'members.1.name:maxLength',
    ]);
  });

  it('is refused with fields that its class does not have, at any depth', () => {
    const plain = { name: 'a', id: 1, members: [{ name: 'b', role: 'owner' }] };
    expect(faults(plain)).toEqual(['id:unknownField', 'members.0.role:unknownField']);
  });

  it.each(['__proto__', 'constructor', 'hasOwnProperty', 'isPrototypeOf', 'toString', 'valueOf'])(
    'is refused with a field named %s',
    (name) => {
      expect(faults(JSON.parse(`{"name":"a","${name}":{"polluted":1}}`))).toEqual([`${name}:unknownField`]);
      expect(faults(JSON.parse(`{"name":"a","owner":{"name":"b","${name}":1}}`))).toEqual([
        `owner.${name}:unknownField`,
      ]);
      expect(Object.prototype).not.toHaveProperty('polluted');
    },
  );

  it.each([null, undefined, 1, 'text', true, [], [{}]])('is refused where it is no object: %j', (plain) => {
    expect(faults(plain)).toEqual([':isObject']);
  });

  it('is refused when it is nested deeper than anything that is meant', () => {
    for (const rules of everyMode) {
      const deep = (name: string) => JSON.parse(`{"${name}":`.repeat(20_000) + '1' + '}'.repeat(20_000)) as object;
      expect(faults(deep('name'), rules)).toEqual(['name:isString']);
      const [{ path, code } = {}] = refusal({ name: 'a', details: deep('x') }, rules).details.errors ?? [];
      expect([path?.startsWith('details.x.x'), code]).toEqual([true, 'maxDepth']);
    }
  });

  it('is refused with more objects than anything that is meant, where no class says how many there may be', () => {
    for (const rules of everyMode) {
      const objects = (count: number) => ({ name: 'a', details: { x: Array.from({ length: count }, () => ({})) } });
      expect(refusal(objects(3_000), rules).details.errors).toEqual([
        { path: 'details.x', code: 'maxObjects', message: 'details.x must not hold more than 2500 objects and lists' },
      ]);
      expect(validateWire(Team, objects(2_000), rules)).toEqual(objects(2_000));
    }
  });

  it('is refused in few words, however many faults it has', () => {
    const many = Object.fromEntries(Array.from({ length: 499 }, (_, index) => [`${'x'.repeat(500)}${index}`, 1]));
    const wire = refusal({ name: 'a', ...many }).toWire();
    expect(wire.errors).toHaveLength(100);
    expect(wire.message).toContain('(the first of 499 faults)');
    expect(JSON.stringify(wire).length).toBeLessThan(100_000);
  });

  it('is refused with more names than anything that is meant, at any depth, whatever their number', () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`x${index}`, 1]));
    // Compared with each other, so many would take minutes.
    expect(refusal(many(300_000)).details.errors).toEqual([
      { path: '', code: 'maxProperties', message: 'an object must not have more than 500 fields' },
    ]);
    expect(faults({ name: 'a', members: [many(501)] })).toEqual(['members.0:maxProperties']);
    expect(faults({ name: 'a', ...many(499) })).toHaveLength(499);
    for (const rules of everyMode)
      expect(faults({ name: 'a', details: many(501) }, rules)).toEqual(['details:maxProperties']);
  });

  it('is refused as soon as it has more unknown fields than that in all', () => {
    const many = Object.fromEntries(Array.from({ length: 400 }, (_, index) => [`x${index}`, 1]));
    const found = faults({ name: 'much too long', members: [many, many] });
    expect([found?.length, found?.[0], found?.at(-1)]).toEqual([
      501,
      'members.0.x0:unknownField',
      'members.1.x100:unknownField',
    ]);
  });

  it('is refused with a list that is too long before anything is made of its entries, at any depth', () => {
    const members = Array.from({ length: 20_000 }, () => ({ name: 'b' }));
    for (const rules of everyMode) {
      membersMade = 0;
      const message = 'members must hold at most 2 entries';
      expect(refusal({ name: 'a', members }, rules).details.errors).toEqual([
        { path: 'members', code: 'arrayMaxSize', message },
      ]);
      expect(refusal({ name: 'a', teams: [{ name: 'b', members }] }, rules).details.errors).toEqual([
        { path: 'teams.0.members', code: 'arrayMaxSize', message },
      ]);
      expect(membersMade).toBe(0);
      const team = { name: 'a', members: [{ name: 'b' }, { name: 'c' }] };
      expect(validateWire(Team, team, rules).members).toHaveLength(2);
    }
  });

  it('is refused with a list where none is meant, before anything is made of its entries', () => {
    const list = () => Array.from({ length: 20_000 }, () => ({}));
    for (const rules of everyMode) {
      membersMade = 0;
      expect(faults({ name: list() }, rules)).toEqual(['name:isString']);
      expect(faults({ name: 'a', owner: list() }, rules)).toEqual(['owner:isObject']);
      expect(faults({ name: 'a', members: [[list()]] }, rules)).toEqual(['members:isObject']);
      // Of a list for an owner it looks at what kind of list its class is.
      expect(membersMade).toBeLessThan(2);
    }
  });

  it('loses fields that its class does not have, at any depth and of any name, where those are to be omitted', () => {
    const plain: unknown = JSON.parse(
      '{"name":"a","id":1,"__proto__":{"polluted":1},"owner":{"name":"b","hasOwnProperty":1,"role":2}}',
    );
    expect(validateWire(Team, plain, { unknownFields: 'omit' })).toEqual({ name: 'a', owner: { name: 'b' } });
    expect(Object.prototype).not.toHaveProperty('polluted');
    expect(() => validateWire(Team, { name: 1, id: 1 }, { unknownFields: 'omit' })).toThrow('name must be a string.');
  });

  it('loses them before anything reads them or compares them with each other, however many there are', () => {
    const read: string[] = [];
    const unknown = (name: string) => Object.defineProperty({}, name, { enumerable: true, get: () => read.push(name) });
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`x${at}`, unknown(`y${at}`)]));
    const plain = { name: 'a', ...many, owner: { name: 'b', ...many } };
    expect(validateWire(Team, plain, { unknownFields: 'omit' })).toEqual({ name: 'a', owner: { name: 'b' } });
    expect(read).toEqual([]);
  });

  it('law: stays as it is while it is read, whether it is taken or refused', () => {
    const names = ['name', 'members', 'owner', 'details', 'counts', 'teams', 'id', 'toString'];
    const plain = anything({ key: constantFrom(...names), maxDepth: 4, maxKeys: names.length });
    assert(
      property(plain, constantFrom(...everyMode), (given, rules) => {
        const before = structuredClone(given);
        try {
          validateWire(Team, given, rules);
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_input' });
        }
        expect(given).toStrictEqual(before);
      }),
    );
  });

  it('law: whatever comes is taken or refused as invalid_input, and nothing else happens', () => {
    assert(
      property(anything({ withBigInt: false, withDate: false, withMap: false, withSet: false }), (plain) => {
        try {
          expect(validateWire(Team, plain, { unknownFields: 'omit' })).toBeInstanceOf(Team);
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_input' });
        }
        try {
          expect(validateWire(Team, plain)).toBeInstanceOf(Team);
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_input' });
        }
      }),
    );
  });

  it('is read by the class itself where that brings a check of its own', () => {
    class Batch {
      constructor(readonly facts: unknown[]) {}
      static fromWire(plain: unknown): Batch {
        if (!Array.isArray(plain)) throw new AppError('invalid_input', 'A list is expected.');
        return new Batch(plain);
      }
    }
    const type = Batch as unknown as Wire<Batch>;
    expect(validateWire(type, [1])).toEqual(new Batch([1]));
    expect(() => validateWire(type, {})).toThrow('A list is expected.');
  });
});
