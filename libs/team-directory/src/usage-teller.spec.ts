import { describe, expect, it } from '@jest/globals';
import { podUsageTold, type UsageTold } from '@atoll/contracts/billing';
import type { Outbox } from '@atoll/events';
import type { EntityManager } from 'typeorm';
import { UsageTeller, type HeldUsage } from './usage-teller.js';

const held: HeldUsage = {
  row: { teamId: 'team', workspaceId: 'workspace', revision: 3, enteredAt: new Date('2026-10-01T00:00:00.000Z') },
  kind: 'pod',
  id: '7',
  name: null,
  sku: 'pod',
  quantity: 1,
  regionId: '1',
};

/** The events that are published of it, as JSON has them. */
async function told(...all: HeldUsage[]): Promise<UsageTold[]> {
  const events: UsageTold[] = [];
  const add = (_manager: EntityManager, _event: object, payload: UsageTold) => void events.push(payload);
  await new UsageTeller({ add } as unknown as Outbox).tell({} as EntityManager, podUsageTold, all);
  return JSON.parse(JSON.stringify(events)) as UsageTold[];
}

describe('what billing is told', () => {
  it('is a fact of a resource, since the transition of its row', async () => {
    const fact = {
      id: 'pod:7:3',
      time: '2026-10-01T00:00:00.000Z',
      sequence: 3,
      resource_id: 'pod:7',
      kind: 'pod',
      sku: 'pod',
      quantity: '1',
      team_id: 'team',
      workspace_id: 'workspace',
      region_id: '1',
    };
    expect(await told(held)).toEqual([{ facts: [fact] }]);
    const more = { name: 'training', attributes: { gpu_count: 8 }, poolId: '5' };
    const further = { resource_name: 'training', attributes: { gpu_count: 8 }, pool_id: '5' };
    expect(await told({ ...held, ...more })).toEqual([{ facts: [{ ...fact, ...further }] }]);
  });

  it('may count since another instant, and be one of several facts of a transition', async () => {
    const at = new Date('2026-10-01T00:00:01.000Z');
    const [event] = await told(held, { ...held, at, mark: '3:earlier' });
    expect(event?.facts.map(({ id, time }) => [id, time])).toEqual([
      ['pod:7:3', '2026-10-01T00:00:00.000Z'],
      ['pod:7:3:earlier', '2026-10-01T00:00:01.000Z'],
    ]);
  });

  it.each([
    ['gpuaas_pool', 'subscription:7:3'],
    ['shared_storage', 'volume:7:3'],
    ['vm', 'vm:7:3'],
    ['baremetal', 'baremetal:7:3'],
  ] as const)('has ids by which billing knows what it knows already: of a %s it is %s', async (kind, id) => {
    expect(await told({ ...held, kind })).toMatchObject([{ facts: [{ id, resource_id: `${kind}:7` }] }]);
  });

  it('goes in events of 100 facts at most, each once and in order', async () => {
    const ids = Array.from({ length: 201 }, (_, number) => String(number));
    const events = await told(...ids.map((id) => ({ ...held, id })));
    expect(events.map(({ facts }) => facts.length)).toEqual([100, 100, 1]);
    expect(events.flatMap(({ facts }) => facts.map(({ id }) => id))).toEqual(ids.map((id) => `pod:${id}:3`));
    expect(await told()).toEqual([]);
  });
});
