import { describe, expect, it } from '@jest/globals';
import { plainToInstance, type ClassTransformOptions } from 'class-transformer';
import { validateSync } from 'class-validator';
import type { Wire } from './contract.js';
import { NumberedIds } from './id-fields.js';
import { TeamPath } from './team-path.js';
import { CreateTeam } from './teams/team.js';
import { AddMember, KeyTerms } from './teams/member.js';
import { CreatePrice } from './billing/price.js';
import { RegionalBillingQuery } from './billing/query.js';
import { textGroup } from './text.js';
import { PageFromZero } from './page.js';

function faults(type: Wire, plain: object, options: ClassTransformOptions = {}): string[] {
  const flatten = (errors: ReturnType<typeof validateSync>, parent = ''): string[] =>
    errors.flatMap((error) => [
      ...Object.values(error.constraints ?? {}).map((message) => `${parent}${error.property}: ${message}`),
      ...flatten(error.children ?? [], `${parent}${error.property}.`),
    ]);
  return flatten(validateSync(plainToInstance(type, plain, options), { whitelist: true, forbidNonWhitelisted: true }));
}

const asText = { groups: [textGroup] };

class Numbered {
  @NumberedIds({ max: 1000 })
  ids!: string[];
}

describe('a field', () => {
  it('of ids that are each named once reads each a few times, however many there are', () => {
    let reads = 0;
    const ids = new Proxy(
      Array.from({ length: 1000 }, (_, at) => String(at + 1)),
      { get: (list, name) => (reads++, Reflect.get(list, name) as unknown) },
    );
    expect(validateSync(Object.assign(new Numbered(), { ids }))).toEqual([]);
    expect(reads).toBeLessThan(10_000);
    expect(faults(Numbered, { ids: ['7', '8', 7] })).toEqual(['ids: ids must not name anything twice']);
  });

  it('of text has bounds and holds nothing that PostgreSQL cannot', () => {
    expect(faults(CreateTeam, { name: 'Research', description: '' })).toEqual([]);
    expect(faults(CreateTeam, { name: 'नमस्ते 🚀 team' })).toEqual([]);
    expect(faults(CreateTeam, {})).not.toEqual([]);
    for (const name of [
      '',
      '  ',
      'two\nlines',
      'gnp\u202e.exe',
      'x'.repeat(101),
      'a\u0000b',
      'a\u001bb',
      '\ud800',
      7,
      null,
      ['a'],
      {},
    ]) {
      expect(faults(CreateTeam, { name }).join()).toMatch(/^name: name must/);
    }
  });

  it('that is optional may be left out but not be null', () => {
    expect(faults(CreateTeam, { name: 'a', description: null })).not.toEqual([]);
    expect(faults(CreateTeam, { name: 'a', description: undefined })).toEqual([]);
  });

  it('inside a list is named by its index', () => {
    const members = [
      { email: 'ada@example.com', name: 'Ada', role: 'member' },
      { email: 'ada', name: 'Ada', role: 'king' },
    ];
    const found = faults(CreateTeam, { name: 'a', members });
    expect(found.join()).toContain('members.1.email: email must be an e-mail address');
    expect(found).toContainEqual(
      'members.1.role: role must be one of: team_owner, team_admin, member, billing_viewer, viewer',
    );
  });

  it('that is no e-mail address is refused at once, however long and odd it is', () => {
    // To look from each of so many signs to the end would take hours.
    for (const part of ['@', 'a@', '@é', 'é', 'a@é.']) {
      const email = part.repeat(5_000_000 / part.length);
      expect(faults(AddMember, { email, name: 'Ada', role: 'member' }).join()).toContain('email: email must be');
      const shorter = `${part.repeat(900 / part.length)}é`;
      expect(faults(AddMember, { email: shorter, name: 'Ada', role: 'member' }).join()).toContain(
        'email: email must be',
      );
    }
  });

  it('that lacks an e-mail address, or has something else in its place, is told that it needs one', () => {
    for (const email of [undefined, null, 5, {}, ['ada@example.com']])
      expect(faults(AddMember, { email, name: 'Ada', role: 'member' }).join()).not.toContain('254');
    const long = `${'a'.repeat(250)}@example.com`;
    expect(faults(AddMember, { email: long, name: 'Ada', role: 'member' }).join()).toContain(
      'email: email must be shorter than or equal to 254 characters',
    );
  });

  it('that is an e-mail address is refused, and throws nothing, where it holds half a surrogate pair', () => {
    for (const email of ['\ud800@example.com', 'ada@\udc00.example', '\ud800']) {
      expect(
        faults(AddMember, { team_id: '01a1fbfa-c6f6-77e9-aebd-42be3c465757', email, name: 'Ada', role: 'member' }),
      ).not.toEqual([]);
    }
  });

  it('that is a list of objects holds no lists', () => {
    const valid = { email: 'ada@example.com', name: 'Ada', role: 'member' };
    for (const members of [[[]], [[valid]], [null], ['ada'], [valid, [valid]]]) {
      expect(faults(CreateTeam, { name: 'a', members }).join()).toContain('each entry of members must be an object');
    }
  });

  it('that is a UUID may be in either case, and is lower case from here on', () => {
    const team_id = '01A1FBFA-C6F6-77E9-AEBD-42BE3C465757';
    expect(faults(TeamPath, { team_id })).toEqual([]);
    expect(plainToInstance(TeamPath, { team_id }).team_id).toBe(team_id.toLowerCase());
  });

  it('of several lines may hold line feeds', () => {
    expect(faults(CreateTeam, { name: 'a', description: 'one\n\ttwo' })).toEqual([]);
    expect(faults(CreateTeam, { name: 'a', description: 'a\u0000b' })).not.toEqual([]);
  });

  it('that is not known is refused', () => {
    expect(faults(CreateTeam, { name: 'a', is_suspended: false }).join()).toContain('is_suspended');
  });

  it.each([
    ['0', 0],
    ['7', 7],
    [3, 3],
  ])('that is a page may, in a query, be %j', (page, read) => {
    expect(faults(PageFromZero, { page }, asText)).toEqual([]);
    expect(plainToInstance(PageFromZero, { page }, asText).page).toBe(read);
  });

  it.each(['0', '7'])('that is a whole number may not, in JSON, be the text %j', (page) => {
    expect(faults(PageFromZero, { page }).join()).toMatch(/page must be a whole number from 0/);
  });

  it.each(['-1', '1e3', '9223372036854775808', '0x10', ' 7', '1.0', '', 1.5, -1, null, ['1', '2'], {}])(
    'that is a page may not be %j',
    (page) => {
      expect(faults(PageFromZero, { page }, asText).join()).toMatch(/page must be a whole number from 0/);
    },
  );

  it.each([
    '2026-11-21',
    '2026-02-30T00:00:00Z',
    '2026-11-21T00:00:00',
    '2026-11T00:00:00Z',
    '2026T00:00:00Z',
    '2026-W47-6T00:00:00Z',
    '2026-325T00:00:00Z',
    '2026-11-21T24:00:00Z',
    '2026-11-21T24:00Z',
    '2026-11-21T00:00Z',
    '2026-11-21T00Z',
    '2026-11-21T00:00:60Z',
    '2026-11-21t00:00:00z',
    '2026-11-21T00:00:00+0545',
    '2026-11-21T00:00:00+15:00',
    'tomorrow',
    5,
  ])('that is an instant may not be %j', (expiry_date) => {
    expect(faults(KeyTerms, { expiry_date })).not.toEqual([]);
  });

  it('that is an instant has a date, a time and a zone', () => {
    for (const expiry_date of ['2026-11-21T00:00:00Z', '2026-11-21T00:00:00.000Z', '2028-02-29T23:59:59+05:45']) {
      expect(faults(KeyTerms, { expiry_date })).toEqual([]);
    }
  });

  const adding = (email: unknown) => ({
    team_id: '01a1fbfa-c6f6-77e9-aebd-42be3c465757',
    email,
    name: 'Ada',
    role: 'member',
  });

  it.each([
    '"a\r\nb"@example.com',
    '"a b"@example.com',
    'a\u0001b@example.com',
    'a\u202eb@example.com',
    'ad\u200bmin@example.com',
    'a\u00a0b@example.com',
    'a\ue000b@example.com',
    'ada@exam\u200bple.com',
    'ada@example.com/x',
    'ada@user:password@example.com',
    'ada@münchen.de:80',
    'ada@127.0.0.1',
    'ada@localhost',
    '@example.com',
    'ada@',
    `${'a'.repeat(65)}@example.com`,
    7,
  ])('that is an e-mail address may not be %j', (email) => {
    expect(faults(AddMember, adding(email)).join()).toContain('email must be an e-mail address');
  });

  it('that is an e-mail address has one spelling from here on', () => {
    const read = (email: string) => [faults(AddMember, adding(email)), plainToInstance(AddMember, adding(email)).email];
    expect(read('Ada.Lovelace+gpu@Example.COM')).toEqual([[], 'ada.lovelace+gpu@example.com']);
    for (const email of ['Zoë@example.com', 'zoe\u0308@example.com'])
      expect(read(email)).toEqual([[], 'zoë@example.com']);
    for (const email of ['ada@münchen.de', 'ADA@MÜNCHEN.DE', 'ada@mu\u0308nchen.de', 'ada@xn--mnchen-3ya.de']) {
      expect(read(email)).toEqual([[], 'ada@xn--mnchen-3ya.de']);
    }
  });

  it.each(['', ' ', '\u200b', '\u3164', '\u2800', '\u00a0\u200d', '\u115f'])(
    'that is a name shows something: not %j',
    (name) => {
      expect(faults(CreateTeam, { name })).not.toEqual([]);
    },
  );

  it('that is a name may be in any script', () => {
    for (const name of ['काठमाडौँ', '東京', 'فريق', '👩‍🚀', 'a']) expect(faults(CreateTeam, { name })).toEqual([]);
  });

  it('that is a counted id is digits or a number, and digits from here on', () => {
    const read = (region_id: unknown) => plainToInstance(RegionalBillingQuery, { region_id }).region_id;
    const wrong = (region_id: unknown) =>
      faults(RegionalBillingQuery, { region_id }).filter((fault) => fault.startsWith('region_id'));
    for (const region_id of ['1', 7, '999999999999999', 'all']) expect(wrong(region_id)).toEqual([]);
    expect([read(7), read('7')]).toEqual(['7', '7']);
    for (const region_id of [0, '0', '01', '-1', 1.5, '1e3', '9223372036854775808', 'ALL', '', null, [7]]) {
      expect(wrong(region_id)).toEqual(['region_id: region_id must be a positive whole number or "all"']);
    }
  });

  it('that is money is decimal text in bounds, never a number', () => {
    const wrong = (unit_price: unknown) =>
      faults(CreatePrice, { unit_price }).filter((fault) => fault.startsWith('unit_price'));
    for (const text of ['0', '1.25', '0.000000001', '999999999.999999999', '1000000000', '1000000000.000'])
      expect(wrong(text)).toEqual([]);
    for (const text of [
      1.25,
      '',
      '01',
      '.5',
      '1.',
      '-1',
      '+1',
      '1e3',
      '1,5',
      '0.0000000001',
      '1000000000.1',
      '1000000001',
      '9999999999',
      null,
    ]) {
      expect([text, wrong(text).length > 0]).toEqual([text, true]);
    }
  });
});
