import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { type CallContext, type Operation } from '@atoll/contracts';
import { gpuHoldings, type TeamGpuHoldings } from '@atoll/contracts/gpuaas';
import { podHoldings } from '@atoll/contracts/pods';
import { teams } from '@atoll/contracts/teams';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { errorOf, TeamsFixture, unknownId } from '../teams-fixture.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());
afterEach(() => {
  jest.restoreAllMocks();
});

/** What the pods service answers of any team. */
let podRegions: object[] = [];

/** Stands in for the gpuaas service, and for the pods service. */
function gpuaasAnswers(answer: (input: { team_id: string }, context: CallContext) => Promise<TeamGpuHoldings>): void {
  const rpc = fixture.get(Rpc);
  const call = rpc.call.bind(rpc) as (operation: Operation, input: object, context: CallContext) => Promise<object>;
  const standIn = (operation: Operation, input: object, context: CallContext) => {
    if (operation.subject === podHoldings.ofTeam.subject)
      return Promise.resolve({ as_of: '2026-10-02T00:00:00.000Z', regions: podRegions });
    return operation.subject === gpuHoldings.ofTeam.subject
      ? answer(input as { team_id: string }, context)
      : call(operation, input, context);
  };
  jest.spyOn(rpc, 'call').mockImplementation(standIn);
}

const region = (region_id: string, vgpus: number) => ({
  region_id,
  region_name: `region ${region_id}`,
  vgpus,
  vgpus_in_use: vgpus - 1,
  gpus: 2,
  gpu_subscriptions: 3,
  gpu_workloads: 4,
  baremetal_instances: 1,
  baremetal_gpus: 8,
});

describe('what a team holds', () => {
  it('is shown by region and in all to every member of the team and to the operator', async () => {
    const { team, keys } = await fixture.createTeam('viewer');
    const as_of = '2026-10-01T00:00:00.000Z';
    gpuaasAnswers(({ team_id }) =>
      Promise.resolve({ as_of, regions: team_id === team.id ? [region('1', 7), region('3', 10)] : [] }),
    );
    const total = {
      vgpus: 17,
      vgpus_in_use: 15,
      gpus: 4,
      gpu_subscriptions: 6,
      gpu_workloads: 8,
      baremetal_instances: 2,
      baremetal_gpus: 16,
    };
    const some = { pods: 2, pods_in_use: 1, vms: 3, vms_in_use: 2, shared_volumes: 1, storage_in_gb: 10 };
    const more = { pods: 5, pods_in_use: 4, vms: 1, vms_in_use: 0, shared_volumes: 2, storage_in_gb: 300 };
    podRegions = [
      { region_id: '2', region_name: 'region 2', ...some },
      { region_id: '3', region_name: 'region 3', ...more },
    ];
    const none = {
      vgpus: 0,
      vgpus_in_use: 0,
      gpus: 0,
      gpu_subscriptions: 0,
      gpu_workloads: 0,
      baremetal_instances: 0,
      baremetal_gpus: 0,
    };
    const regions = [
      { ...region('1', 7), pods: 0, pods_in_use: 0, vms: 0, vms_in_use: 0, shared_volumes: 0, storage_in_gb: 0 },
      { region_id: '2', region_name: 'region 2', ...none, ...some },
      { ...region('3', 10), ...more },
    ];
    const sum = { pods: 7, pods_in_use: 5, vms: 4, vms_in_use: 2, shared_volumes: 3, storage_in_gb: 310 };
    const overview = { team_id: team.id, as_of, total: { ...total, ...sum }, regions };
    for (const key of [keys[0] ?? '', fixture.admin]) {
      expect(await fixture.call(key, teams.resourceOverview, { team_id: team.id })).toEqual(overview);
    }
    podRegions = [];
    const other = await fixture.createTeam();
    const zero = {
      vgpus: 0,
      vgpus_in_use: 0,
      gpus: 0,
      gpu_subscriptions: 0,
      gpu_workloads: 0,
      baremetal_instances: 0,
      baremetal_gpus: 0,
      pods: 0,
      pods_in_use: 0,
      vms: 0,
      vms_in_use: 0,
      shared_volumes: 0,
      storage_in_gb: 0,
    };
    expect(await fixture.call(fixture.admin, teams.resourceOverview, { team_id: other.team.id })).toMatchObject({
      total: zero,
      regions: [],
    });
  });

  it('is asked of nobody for another team, nor for one that is gone', async () => {
    const asked: string[] = [];
    gpuaasAnswers(({ team_id }) => Promise.reject(new Error(String(asked.push(team_id)))));
    const [own, other, gone] = [
      await fixture.createTeam('team_owner'),
      await fixture.createTeam(),
      await fixture.createTeam(),
    ];
    await fixture.call(fixture.admin, teams.delete, { team_id: gone.team.id });
    const refused: [string, string][] = [
      [own.keys[0] ?? '', other.team.id],
      [own.keys[0] ?? '', unknownId],
      [fixture.admin, unknownId],
      [fixture.admin, gone.team.id],
    ];
    for (const [key, team_id] of refused) {
      const error = await errorOf(fixture.call(key, teams.resourceOverview, { team_id }));
      expect(error.toWire()).toMatchObject({ code: 'not_found', message: 'No such team.' });
    }
    expect(asked).toEqual([]);
  });

  it.each([
    ['away', new AppError('unavailable', 'x')],
    ['too slow', new AppError('deadline_exceeded', 'x')],
    ['broken', new AppError('internal', 'x')],
  ])('is not shown without what a service says that is %s, which the answer names', async (_how, error) => {
    gpuaasAnswers(() => Promise.reject(error));
    const { team } = await fixture.createTeam();
    expect((await errorOf(fixture.call(fixture.admin, teams.resourceOverview, { team_id: team.id }))).toWire()).toEqual(
      {
        code: 'unavailable',
        message: 'The service gpuaas cannot say at the moment what the team holds.',
        retryAfterSeconds: 2,
      },
    );
  });

  it('is asked for in time to name a service that hangs, before the caller’s patience ends', async () => {
    const patience: number[] = [];
    gpuaasAnswers((_input, { deadlineAtMs, caller }) => {
      expect(caller).toEqual({ kind: 'system', service: 'teams' });
      patience.push(deadlineAtMs - Date.now());
      return Promise.reject(new AppError('deadline_exceeded', 'x'));
    });
    const { team } = await fixture.createTeam();
    const context = await fixture.contextOf(fixture.admin, teams.resourceOverview, {});
    const ask = (leftMs: number) =>
      errorOf(
        fixture.ask(teams.resourceOverview, { team_id: team.id }, { ...context, deadlineAtMs: Date.now() + leftMs }),
      );
    await ask(15_000);
    // A call that is too late when it comes asks for nothing.
    while (patience.length < 2) await ask(2_400);
    expect(patience[0]).toBeLessThanOrEqual(2_000);
    expect(patience[1]).toBeLessThanOrEqual(1_900);
  });
});
