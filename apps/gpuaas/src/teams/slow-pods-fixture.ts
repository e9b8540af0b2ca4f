import { podWorkloads } from '@atoll/contracts/gpuaas';
import { teamDeletionRequested } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import type { GpuaasFixture, ToldTeam } from '../gpuaas-fixture.js';

const count = 5;
const context = () => systemContext('pods');

/** A team with pods on as many subscriptions, which is then deleted by force. */
export async function endingTeam(
  fixture: GpuaasFixture,
  pool_id: string,
): Promise<{ team: ToldTeam; pods: [string, ...string[]] }> {
  const team = await fixture.team();
  const pods: [string, ...string[]] = [newId(), ...Array.from({ length: count - 1 }, () => newId())];
  const held = await Promise.all(pods.map(() => fixture.subscribe(team, { pool_id })));
  await fixture.settle();
  for (const [at, pod_id] of pods.entries()) {
    const subscription_id = held[at]?.subscription_id ?? '';
    await fixture.ask(podWorkloads.start, { pod_id, start: 1, subscription_id, vgpus: 1, pod_name: 'job' }, context());
  }
  await fixture.settle();
  await fixture.tell(teamDeletionRequested, { team_id: team.team_id, revision: 2, attempt_id: newId(), force: true });
  return { team, pods };
}

/** The pods service says that a pod is gone. */
export async function endOf(fixture: GpuaasFixture, pod_id: string): Promise<void> {
  await fixture.ask(podWorkloads.end, { pod_id, start: 1 }, context());
}

/** Of all workloads of a team, each once. */
export async function workloadStates(fixture: GpuaasFixture, { team_id }: ToldTeam): Promise<string[]> {
  const states = 'SELECT DISTINCT state FROM workload WHERE team_id = $1 ORDER BY state';
  return (await fixture.query<{ state: string }>(states, [team_id])).map(({ state }) => state);
}
