import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { UserCaller } from '@atoll/contracts';
import { terminals } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { Rpc, systemContext } from '@atoll/rpc';
import { WebSocket } from 'ws';
import { Clusters } from '../cluster/clusters.js';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { openShellsUnderTest } from './shell-fixture.js';

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start({ connections: 3, connectionsPerTeam: 2, connectionsPerUser: 1 });
  openShellsUnderTest(await fixture.get(Clusters).driverOf('1'));
});
afterAll(() => fixture.stop());

function memberOf({ team_id }: ToldTeam): Partial<UserCaller> & { userId: string } {
  const userId = newId();
  fixture.owner.members.push({ user_id: userId, team_id, role: 'member', is_suspended: false });
  return { userId, scope: 'user', teams: [{ teamId: team_id, role: 'member' }] };
}

/** What the terminal says first: the words of its end, or what its shell is asked for. */
async function openTerminal(who: Partial<UserCaller>, pod_name: string): Promise<string> {
  const { ticket } = await fixture.call(terminals.open, { pod_name, columns: 80, rows: 24 }, who);
  const { host, port } = await fixture.get(Rpc).call(terminals.locate, { pod_name, ticket }, systemContext('gateway'));
  const socket = new WebSocket(`ws://${host}:${port}/${pod_name}`, ['atoll.v1', ticket]);
  await once(socket, 'open');
  socket.send(Buffer.from('hello'));
  return Promise.race([
    once(socket, 'message').then(([data]) => String(data)),
    once(socket, 'close').then(([code, reason]) => `${code} ${reason}`),
  ]);
}

it('terminals stand under the limits of all connections to pods: of a user, of a team, of all', async () => {
  const [ours, theirs] = [await fixture.team('member', 2), await fixture.team('member', 2)];
  const pods = [(await fixture.running(ours)).pod_name, (await fixture.running(theirs)).pod_name] as const;
  const [first, second] = [memberOf(ours), memberOf(ours)];
  expect(await openTerminal(first, pods[0])).toBe('> hello');
  expect(await openTerminal(first, pods[0])).toMatch(/^1008 You have 1 open connections to pods/);
  // Two places are left, and one is taken: nobody has more than are left.
  expect(await openTerminal(second, pods[0])).toBe('> hello');
  expect(await openTerminal(memberOf(ours), pods[0])).toMatch(/^1008 Your team has 2 open connections to its pods/);
  expect(await openTerminal(memberOf(theirs), pods[1])).toBe('> hello');
  expect(await openTerminal(memberOf(theirs), pods[1])).toMatch(
    /^1008 Too many connections to pods are open, 1 of them of your team/,
  );
});
