import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { gpuServices, regions } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import { errorOf, GpuaasFixture } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

const aName = () => `region-${newId()}`;
const create = (region_name = aName(), more: object = {}) => fixture.call(regions.create, { region_name, ...more });

describe('a region', () => {
  it('is made with its name and, where it is told, its place; whoever needs regions is told of it', async () => {
    const region_name = aName();
    const region = await create(region_name, { city: 'Pokhara', country: 'NP' });
    const { region_id } = region;
    expect(region).toEqual({
      region_id: expect.stringMatching(/^\d+$/),
      region_name,
      city: 'Pokhara',
      country: 'NP',
      created_at: expect.stringMatching(/\.\d{3}Z$/),
    });
    expect(await create()).toMatchObject({ city: null, country: null });
    const told = () =>
      fixture.events.filter(
        ({ name, payload }) => name === 'gpuaas.region_added' && (payload as typeof region).region_id === region_id,
      );
    while (told().length === 0) await delay(5);
    expect(told().map(({ payload }) => payload)).toEqual([{ region_id, region_name }]);
  });

  it('has its name alone, also of many that are made at once, and is made once by one Idempotency-Key', async () => {
    const region_name = aName();
    const answers = await Promise.allSettled(Array.from({ length: 5 }, () => create(region_name)));
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect((await errorOf(create(region_name))).code).toBe('conflict');
    const again = () =>
      fixture.call(
        regions.create,
        { region_name: 'once' },
        { platformAdmin: true, userId: region_name.slice(7) },
        { key: 'k', fingerprint: 'f' },
      );
    expect(await again()).toEqual(await again());
  });

  it('has GPU services, each of its own name there; another region may have one of that name', async () => {
    const [one, two] = [await create(), await create()];
    const gpuaas = await fixture.call(regions.createGpuaas, { region_id: one.region_id, name: 'a' });
    expect(gpuaas).toMatchObject({ region_id: one.region_id, name: 'a' });
    expect((await errorOf(fixture.call(regions.createGpuaas, { region_id: one.region_id, name: 'a' }))).code).toBe(
      'conflict',
    );
    expect((await fixture.call(regions.createGpuaas, { region_id: two.region_id, name: 'a' })).gpuaas_id).not.toBe(
      gpuaas.gpuaas_id,
    );
    expect((await errorOf(fixture.call(regions.createGpuaas, { region_id: '999999999', name: 'a' }))).code).toBe(
      'not_found',
    );
    expect((await errorOf(fixture.call(regions.createGpuaas, { region_id: 'eu', name: 'a' }))).code).toBe(
      'invalid_input',
    );
  });

  it('is listed in the order it was made, in pages counted from 1; so are GPU services', async () => {
    const [first, last] = [await create(), await create()];
    await fixture.call(regions.createGpuaas, { region_id: last.region_id, name: 'z' });
    for (const [list, key] of [
      [regions.list, 'region_id'],
      [regions.listGpuaas, 'gpuaas_id'],
    ] as const) {
      const { pagination } = await fixture.call<object, { pagination: { total: number } }>(list, {});
      const ids: string[] = [];
      for (let page = 1; page <= pagination.total; page += 1) {
        const { data } = await fixture.call<object, { data: object[] }>(list, { page, limit: 1 });
        ids.push(...data.map((each) => String((each as Record<string, unknown>)[key])));
      }
      expect(ids).toEqual(ids.toSorted((one, other) => Number(one) - Number(other)));
      if (key === 'region_id') expect(ids.slice(-2)).toEqual([first.region_id, last.region_id]);
      expect((await fixture.call<object, { data: object[] }>(list, { page: pagination.total + 1 })).data).toEqual([]);
    }
  });

  it('tells other services where something in it is created: in its oldest GPU service, or in the named one of it', async () => {
    const [region, other] = [await create(), await create()];
    const find = (region_id: string, gpuaas_id?: string) =>
      fixture.ask(
        gpuServices.find,
        { region_id, ...(gpuaas_id !== undefined && { gpuaas_id }) },
        systemContext('pods'),
      );
    expect((await errorOf(find(region.region_id))).code).toBe('not_supported');
    const oldest = await fixture.call(regions.createGpuaas, { region_id: region.region_id, name: 'a' });
    const next = await fixture.call(regions.createGpuaas, { region_id: region.region_id, name: 'b' });
    const { region_id, region_name } = region;
    expect(await find(region_id)).toEqual({ region_id, region_name, gpuaas_id: oldest.gpuaas_id });
    expect(await find(region_id, next.gpuaas_id)).toEqual({ region_id, region_name, gpuaas_id: next.gpuaas_id });
    expect((await errorOf(find(other.region_id, next.gpuaas_id))).message).toBe('No such GPU service in this region.');
    expect((await errorOf(find('999999999'))).message).toBe('No such region.');
    expect((await errorOf(fixture.call(gpuServices.find, { region_id }))).code).toBe('forbidden');
  });

  it('is the operator’s to make and to see', async () => {
    const { member } = await fixture.team('team_owner');
    const calls = [
      fixture.call(regions.create, { region_name: aName() }, member),
      fixture.call(regions.createGpuaas, { region_id: '1', name: 'a' }, member),
      fixture.call(regions.list, {}, member),
      fixture.call(regions.listGpuaas, {}, member),
    ];
    for (const call of calls) expect((await errorOf(call)).code).toBe('forbidden');
  });

  it.each([{ region_name: '' }, { region_name: 'x'.repeat(101) }, { region_name: 7 }])(
    'is not made of %j',
    async (body) => {
      const { code, details } = await errorOf(fixture.call(regions.create, body as { region_name: string }));
      expect([code, details.errors?.[0]?.path]).toEqual(['invalid_input', 'region_name']);
    },
  );
});
