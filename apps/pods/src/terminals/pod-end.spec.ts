import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { once } from 'node:events';
import type { UserCaller } from '@atoll/contracts';
import { terminals } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { Rpc, systemContext } from '@atoll/rpc';
import { WebSocket } from 'ws';
import { Clusters } from '../cluster/clusters.js';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 8);
});
afterAll(() => fixture.stop());

/** A shell of a simulated pod; resolves, when its prompt is there, with its socket and how it closes. */
async function terminalOf(pod_name: string): Promise<{ socket: WebSocket; closed: Promise<string> }> {
  const userId = newId();
  fixture.owner.members.push({ user_id: userId, team_id: team.team_id, role: 'member', is_suspended: false });
  const who: Partial<UserCaller> = { userId, scope: 'user', teams: [{ teamId: team.team_id, role: 'member' }] };
  const { ticket } = await fixture.call(terminals.open, { pod_name, columns: 80, rows: 24 }, who);
  const { host, port } = await fixture.get(Rpc).call(terminals.locate, { pod_name, ticket }, systemContext('gateway'));
  const socket = new WebSocket(`ws://${host}:${port}/${pod_name}`, ['atoll.v1', ticket]);
  const closed = new Promise<string>((resolve) =>
    socket.once('close', (code, reason) => resolve(`${code} ${reason.toString()}`)),
  );
  await once(socket, 'message');
  return { socket, closed };
}

it('a terminal says that its pod has ended where it has', async () => {
  const pod = await fixture.running(team);
  const { closed } = await terminalOf(pod.pod_name);
  // Behind the back of the service, so that the shell is the first to end.
  const [row] = await fixture.query<{ pod_id: string; run: number }>(
    'SELECT pod_id, run FROM pod WHERE pod_name = $1',
    [pod.pod_name],
  );
  const driver = await fixture.get(Clusters).driverOf('1');
  await driver.stopPod({ kind: 'pod', id: row!.pod_id, run: row!.run }, 0, AbortSignal.timeout(10_000));
  expect(await closed).toBe(`1000 The pod ${pod.pod_name} has stopped or restarted.`);
});

it('a terminal says the code of its shell where the shell alone was killed', async () => {
  const { socket, closed } = await terminalOf((await fixture.running(team)).pod_name);
  socket.send(Buffer.from('exit 137\r'));
  expect(await closed).toBe('1000 The shell ended with code 137.');
});
