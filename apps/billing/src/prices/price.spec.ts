import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CreatePrice, prices } from '@atoll/contracts/billing';
import { teamChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { aTeam } from '@atoll/testing';
import { BillingFixture, errorOf, memberOf, operator, type ToldTeam } from '../billing-fixture.js';

let fixture: BillingFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BillingFixture.start({ currency: 'EUR' });
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
const past = '2026-01-01T00:00:00.000Z';
let sequence = 0;
const terms = (more: Partial<CreatePrice> = {}): CreatePrice => ({
  sku: `vm.${(sequence += 1)}`,
  unit: 'vm',
  unit_price: '1.250000000',
  valid_from: tomorrow,
  ...more,
});
const create = (price: CreatePrice) => fixture.call(prices.create, price);
const audited = (sku: string) =>
  fixture.query(
    'SELECT trim_scale(price_before)::text AS before, trim_scale(price_after)::text AS after, user_id, request_id FROM price_audit WHERE sku = $1 ORDER BY created_at, id',
    [sku],
  );

describe('a price', () => {
  it('is shown as it holds: decimal text, the currency of the deployment, whom it is for', async () => {
    const price = terms();
    const shown = await create(price);
    expect(shown).toEqual({
      ...price,
      price_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      unit_price: '1.25',
      currency: 'EUR',
      team_id: null,
      created_at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
      replaced_at: null,
    });
    expect(await audited(price.sku)).toEqual([]);
    const told = () => fixture.events.find(({ payload }) => (payload as { sku?: string }).sku === price.sku);
    while (!told()) await new Promise((resolve) => setImmediate(resolve));
    expect(told()?.payload).toEqual(shown);
  });

  it('keeps every one of its digits', async () => {
    for (const unit_price of ['0', '0.000000001', '999999999.999999999', '1000000000']) {
      expect(await create(terms({ unit_price }))).toMatchObject({ unit_price });
    }
  });

  it('may not start in the past without force; with it, an audit row says who and what held before', async () => {
    const price = terms({ valid_from: past });
    const refused = await errorOf(create(price));
    expect([refused.code, refused.details.errors?.[0]?.path]).toEqual(['invalid_input', 'valid_from']);
    expect(refused.message).toContain('force');
    await create({ ...price, force: true });
    await create({ ...price, valid_from: '2026-02-01T00:00:00Z', unit_price: '2', force: true });
    await create({ ...price, valid_from: '2026-03-01T00:00:00Z', unit_price: '3', force: true, team_id: team.team_id });
    const row = { user_id: expect.any(String), request_id: expect.any(String) };
    expect(await audited(price.sku)).toEqual([
      { before: null, after: '1.25', ...row },
      { before: '1.25', after: '2', ...row },
      { before: '2', after: '3', ...row },
    ]);
  });

  it('takes the place of one with the same start by force alone; the old one stays, marked', async () => {
    const price = terms();
    const first = await create(price);
    expect((await errorOf(create({ ...price, unit_price: '2' }))).code).toBe('conflict');
    const second = await create({ ...price, unit_price: '2', force: true });
    const ids = async (include_ended?: string) => {
      const input = { sku: price.sku, ...(include_ended && { include_ended }) };
      return (await fixture.call(prices.list, input)).data.map(({ price_id }) => price_id);
    };
    expect(await ids()).toEqual([second.price_id]);
    expect(await ids('true')).toEqual([first.price_id, second.price_id]);
    expect(await audited(price.sku)).toHaveLength(1);
  });

  it('of a team stands beside the general one', async () => {
    const price = terms();
    await create(price);
    expect(await create({ ...price, team_id: team.team_id })).toMatchObject({ team_id: team.team_id });
    const ofTeam = await fixture.call(prices.list, { sku: price.sku, team_id: team.team_id });
    expect(ofTeam.pagination).toEqual({ page: 1, limit: 10, total: 1 });
  });

  it('of a team that is unknown or deleted is not set: the team is not found; those of a deleted one are still listed', async () => {
    const deleted = await fixture.team();
    await fixture.tell(teamChanged, { ...aTeam([]), team_id: deleted.team_id, revision: 2, status: 'deleted' });
    for (const team_id of [newId(), deleted.team_id]) {
      const refused = await errorOf(create(terms({ team_id })));
      expect([refused.code, refused.message]).toEqual(['not_found', 'No such team.']);
    }
    const ofUnknown = await errorOf(fixture.call(prices.list, { team_id: newId() }));
    expect([ofUnknown.code, ofUnknown.message]).toEqual(['not_found', 'No such team.']);
    expect((await fixture.call(prices.list, { team_id: deleted.team_id })).data).toEqual([]);
  });

  it('is by the one unit of its SKU', async () => {
    const price = terms();
    await create(price);
    const refused = await errorOf(
      create({ ...price, unit: 'GB', valid_from: new Date(Date.now() + 2 * 86_400_000).toISOString() }),
    );
    expect([refused.code, refused.message]).toEqual(['conflict', expect.stringContaining('"vm"')]);
  });

  it.each([
    '2026-10-01T00:00:00.0001Z',
    '1999-12-31T23:59:59Z',
    '2000-01-01T00:00:00+05:45',
    '9999-12-31T23:59:59-05:00',
    '2026-02-30T00:00:00Z',
  ])('does not start at %s', async (valid_from) => {
    const refused = await errorOf(create(terms({ valid_from, force: true })));
    expect([refused.code, refused.details.errors?.[0]?.path]).toEqual(['invalid_input', 'valid_from']);
  });

  it.each([
    ['', true],
    ['.1', true],
    ['.123', true],
    ['.1200000', true],
    ['.123000000', true],
    ['.0001', false],
    ['.123456', false],
    ['.000000001', false],
  ])('starts at a second with the decimals "%s" as the document says: %s', async (decimals, isTaken) => {
    const valid_from = `2026-10-01T00:00:00${decimals}Z`;
    const { pattern } = Reflect.getMetadata('swagger/apiModelProperties', CreatePrice.prototype, 'valid_from') as {
      pattern: string;
    };
    expect(new RegExp(pattern).test(valid_from)).toBe(isTaken);
    const creating = create(terms({ valid_from, force: true }));
    if (isTaken) expect(Date.parse((await creating).valid_from)).toBe(Date.parse(valid_from));
    else {
      expect((await errorOf(creating)).message).toBe(
        'valid_from must be an instant in the year 2000 or later, to the millisecond, such as 2026-10-01T00:00:00.000Z.',
      );
    }
  });

  it('that is wrong in itself is refused for that, whoever sets it', async () => {
    const wrong = terms({ valid_from: '2000-01-01T00:00:00+05:45' });
    expect((await errorOf(fixture.call(prices.create, wrong, memberOf(team.team_id)))).code).toBe('invalid_input');
  });

  it('that two set at once is one price', async () => {
    const price = terms();
    const answers = await Promise.allSettled(
      Array.from({ length: 5 }, (_, index) => create({ ...price, unit_price: `${index + 1}` })),
    );
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('of many forced at once is the one set last; all of them stay', async () => {
    const price = terms();
    await Promise.all(
      Array.from({ length: 5 }, (_, index) => create({ ...price, unit_price: `${index + 1}`, force: true })),
    );
    const [inForce, ...more] = (await fixture.call(prices.list, { sku: price.sku })).data;
    const all = (await fixture.call(prices.list, { sku: price.sku, include_ended: 'true' })).data;
    expect([more, all.length, new Set(all.map(({ created_at }) => created_at)).size]).toEqual([[], 5, 5]);
    expect(all.at(-1)).toEqual(inForce);
    expect(await audited(price.sku)).toHaveLength(4);
  });

  it('that takes the place of another is later than that, though the clock was set back', async () => {
    const price = terms();
    const { price_id } = await create(price);
    await fixture.query(`UPDATE price SET created_at = created_at + interval '1 hour' WHERE id = $1`, [price_id]);
    const [before] = await fixture.query<{ at: Date }>('SELECT created_at AS at FROM price WHERE id = $1', [price_id]);
    const { created_at } = await create({ ...price, force: true });
    expect(Date.parse(created_at)).toBe(before!.at.getTime() + 1);
  });

  it('of a new SKU, set at once by two units, is by one of them', async () => {
    const price = terms();
    const answers = await Promise.allSettled(['vm', 'hour'].map((unit) => create({ ...price, unit })));
    expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  it('with a wrong unit is corrected by force while it is the only one of its SKU', async () => {
    const price = terms({ unit: 'hour' });
    await create(price);
    const right = { ...price, unit: 'vm' };
    expect((await errorOf(create(right))).message).toContain('force');
    expect(await create({ ...right, force: true })).toMatchObject({ unit: 'vm' });
    const all = (await fixture.call(prices.list, { sku: price.sku, include_ended: 'true' })).data;
    expect(all.map(({ unit, replaced_at }) => [unit, replaced_at !== null])).toEqual([
      ['hour', true],
      ['vm', false],
    ]);
    await create({ ...right, team_id: team.team_id });
    // Now there are two, of which one would keep the other unit.
    expect(await errorOf(create({ ...price, force: true }))).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('priced by the unit "vm"'),
    });
    const later = { ...price, valid_from: past, force: true };
    expect((await errorOf(create(later))).code).toBe('conflict');
    const shown = (await fixture.call(prices.list, { sku: price.sku })).data;
    expect(shown.map(({ unit, team_id }) => [unit, team_id])).toEqual([
      ['vm', null],
      ['vm', team.team_id],
    ]);
  });

  it('is set once by one Idempotency-Key', async () => {
    const price = terms();
    const again = () =>
      fixture.call(
        prices.create,
        price,
        { ...operator, userId: team.team_id },
        { key: price.sku, fingerprint: 'body' },
      );
    expect(await again()).toEqual(await again());
    expect((await fixture.call(prices.list, { sku: price.sku })).pagination.total).toBe(1);
  });

  it('is the operator’s to set and to see', async () => {
    for (const role of ['team_owner', 'billing_viewer'] as const) {
      const member = memberOf(team.team_id, role);
      expect((await errorOf(fixture.call(prices.create, terms(), member))).code).toBe('forbidden');
      expect((await errorOf(fixture.call(prices.list, {}, member))).code).toBe('forbidden');
    }
  });
});
