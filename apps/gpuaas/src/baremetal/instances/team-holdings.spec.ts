import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { connections, gpuHoldings, type BaremetalChanged, type TeamCapacityChanged } from '@atoll/contracts/gpuaas';
import {
  teamChanged,
  teamDeletionRequested,
  workspaceDeletionRequested,
  type TeamDeletionAnswered,
} from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import { aTeam } from '@atoll/testing';
import { TeamCapacity } from '../../capacity/team-capacity.js';
import { errorOf, type ToldTeam } from '../../gpuaas-fixture.js';
import { BaremetalFixture } from '../baremetal-fixture.js';

let fixture: BaremetalFixture;
let team: ToldTeam;
let model: string;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
});
beforeEach(async () => {
  team = await fixture.team();
  model = `model-${newId().slice(-8)}`;
});
afterAll(() => fixture.stop());

const node = (faults = '') =>
  fixture.available(faults, { specs: { gpu_model: model, gpu_count: 4, cpu_cores: 64, memory_gb: 512 } });
const ask = () => fixture.request(team, { specs: { gpu_model: model } });
const holdings = async () =>
  (
    await fixture.gpuaas.ask(
      gpuHoldings.ofTeam,
      { team_id: team.team_id },
      systemContext('teams', { deadlineMs: 60_000 }),
    )
  ).regions;

async function cards(): Promise<number> {
  await fixture.gpuaas.get(TeamCapacity).tell();
  const [row] = await fixture.gpuaas.query<{ revision: number }>(
    'SELECT revision::int FROM team_capacity WHERE team_id = $1',
    [team.team_id],
  );
  if (!row) return 0;
  const isMeant = (each: TeamCapacityChanged) => each.team_id === team.team_id && each.revision === row.revision;
  const told = await fixture.heard<TeamCapacityChanged>('gpuaas.team_capacity_changed', (all) => all.some(isMeant));
  return new Set(told.find(isMeant)?.gpu_ids).size;
}

/** One that tells by itself may be under way just then, and tells what was so before. */
async function cardsCome(to: number): Promise<void> {
  while ((await cards()) !== to) await delay(20);
}

async function deletion(
  more: { workspace_id?: string; force?: boolean } = {},
): Promise<TeamDeletionAnswered | undefined> {
  const fact = { team_id: team.team_id, revision: 2, attempt_id: newId() };
  const { workspace_id, force } = more;
  if (workspace_id === undefined)
    await fixture.gpuaas.tell(teamDeletionRequested, { ...fact, ...(force && { force }) });
  else await fixture.gpuaas.tell(workspaceDeletionRequested, { ...fact, workspace_id });
  const isMeant = ({ attempt_id }: TeamDeletionAnswered) => attempt_id === fact.attempt_id;
  return (await fixture.heard<TeamDeletionAnswered>('teams.team_deletion_answered', (all) => all.some(isMeant))).find(
    isMeant,
  );
}

describe('what a team has of bare metal', () => {
  it('counts in its resources, in the cards of its members and among the instances that may attach, until it is released', async () => {
    await node();
    await fixture.request(await fixture.team(), { specs: { gpu_model: model } });
    await fixture.settle();
    await node();
    const instance = await ask();
    expect([await holdings(), await cards()]).toEqual([[], 0]);
    await fixture.settle();
    expect(await holdings()).toMatchObject([
      {
        region_id: fixture.regionId,
        baremetal_instances: 1,
        baremetal_gpus: 4,
        gpus: 0,
        vgpus: 0,
        gpu_subscriptions: 0,
      },
    ]);
    await cardsCome(4);
    const attachable = () =>
      fixture.gpuaas.call(connections.compatibleInstances, { team_id: team.team_id }, team.member);
    expect((await attachable()).data).toEqual([
      { id: instance.instance_id, name: 'training', kind: 'baremetal', status: 'Active' },
    ]);
    await fixture.end(team, instance);
    expect((await attachable()).data).toEqual([]);
    expect((await holdings())[0]?.baremetal_instances).toBe(1);
    await fixture.settle();
    expect(await holdings()).toEqual([]);
    await cardsCome(0);
  });

  it('is published with each change, for those who list instances', async () => {
    await node();
    const { instance_id } = await ask();
    await fixture.settle();
    const ours = (each: BaremetalChanged) => each.instance_id === instance_id;
    const told = await fixture.heard<BaremetalChanged>('gpuaas.baremetal_changed', (all) =>
      all.some((each) => ours(each) && each.status === 'Active'),
    );
    const inOrder = told.filter(ours).sort((one, other) => one.revision - other.revision);
    expect(new Set(inOrder.map(({ status }) => status))).toEqual(new Set(['Requested', 'Provisioning', 'Active']));
  });
});

describe('a team that is to be deleted', () => {
  it('is told what it has, also by workspace', async () => {
    await node();
    await ask();
    const remaining = [{ kind: 'baremetal_instance', count: 1 }];
    expect(await deletion()).toMatchObject({ holds: '1 bare-metal instance', remaining });
    expect(await deletion({ workspace_id: team.workspace_id })).toMatchObject({ remaining });
    expect(await deletion({ workspace_id: newId() })).toMatchObject({ holds: null, remaining: [] });
  });

  it('by force has all of it ended, whatever state it is in, and gets nothing new', async () => {
    const [first] = [await node(), await node()];
    const active = await ask();
    await fixture.settle();
    const [begun, waiting] = [await ask(), await ask()];
    await fixture.reach(begun, 'placing_keys');
    const [left] = (await deletion({ force: true }))?.remaining ?? [];
    // The one that waits ends at once, before the others are counted or after.
    expect([2, 3].map((count) => ({ kind: 'baremetal_instance', count }))).toContainEqual(left);
    expect((await errorOf(ask())).code).toBe('conflict');
    await fixture.settle();
    const ended = await Promise.all(
      [active, begun, waiting].map(async (each) => (await fixture.instance(team, each)).status),
    );
    expect(ended).toEqual(['Released', 'Cancelled', 'Cancelled']);
    expect(await deletion({ force: true })).toMatchObject({ holds: null, remaining: [] });
    expect((await fixture.node(first.node_id)).status).toBe('Available');
  });
});

describe('a team that is suspended', () => {
  const suspend = (is_suspended: boolean, revision: number) => {
    const workspaces = [{ id: team.workspace_id, name: 'default' }];
    return fixture.gpuaas.tell(teamChanged, { ...aTeam(workspaces), team_id: team.team_id, is_suspended, revision });
  };

  it('keeps what it has and may give it back; it gets nothing new, and what it waits for goes to others', async () => {
    await node();
    const active = await ask();
    await fixture.settle();
    const waiting = await ask();
    await fixture.settle();
    await suspend(true, 5);
    expect((await errorOf(ask())).code).toBe('team_suspended');
    expect((await fixture.credentials(team, active)).port).toBe(22);
    const other = await fixture.team();
    const theirs = await fixture.request(other, { specs: { gpu_model: model } });
    await fixture.end(team, active);
    await fixture.settle();
    expect((await fixture.instance(team, waiting)).status).toBe('Requested');
    expect((await fixture.instance(other, theirs)).status).toBe('Active');
    await suspend(false, 6);
    await fixture.end(other, theirs);
    await fixture.settle();
    expect((await fixture.instance(team, waiting)).status).toBe('Active');
  });

  it('gets no free host when its requests look again by themselves', async () => {
    await node();
    const other = await fixture.team();
    const theirs = await fixture.request(other, { specs: { gpu_model: model } });
    await fixture.settle();
    const waiting = await ask();
    await fixture.settle();
    await suspend(true, 5);
    await fixture.end(other, theirs);
    await fixture.settle();
    await fixture.pass(5 * 60);
    await fixture.settle();
    expect(await fixture.instance(team, waiting)).toMatchObject({
      status: 'Requested',
      reason: 'The team is suspended: its requests wait.',
    });
    await suspend(false, 6);
    await fixture.sweep();
    await fixture.settle();
    expect((await fixture.instance(team, waiting)).status).toBe('Active');
  });
});
