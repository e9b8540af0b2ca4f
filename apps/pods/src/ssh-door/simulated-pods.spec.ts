import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { podConnections, sshKeys, type Pod } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import { Turns } from '@atoll/waiting';
import ssh2 from 'ssh2';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { SshServer } from './ssh-server.js';

const keys = ssh2.utils.generateKeyPairSync('ed25519');
let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start({ sshPort: '0', sshHost: '127.0.0.1', sshPublicHost: 'ssh.example.com' });
  team = await fixture.team('member', 8);
  const user = { userId: newId(), scope: 'user' } as const;
  await fixture.call(sshKeys.add, { public_key: keys.public }, user);
  fixture.owner.members.push({ user_id: user.userId, team_id: team.team_id, role: 'member', is_suspended: false });
});
afterAll(() => fixture.stop());

const port = () => fixture.get(SshServer).port ?? 0;
async function logIn({ pod_name }: Pod): Promise<ssh2.Client> {
  const client = new ssh2.Client();
  client.connect({ host: '127.0.0.1', port: port(), username: pod_name, privateKey: keys.private });
  await once(client, 'ready');
  return client;
}
const run = (client: ssh2.Client, line: string) =>
  new Promise<ssh2.ClientChannel>((resolve, reject) => {
    client.exec(line, (error, channel) => (error ? reject(error) : resolve(channel)));
  });
const connections = () => fixture.ask(podConnections.read, { team_id: team.team_id }, systemContext('gpuaas'));

it('a simulated pod is entered by SSH, and left when it ends', async () => {
  const pod = await fixture.running(team);
  const client = await logIn(pod);
  const channel = await run(client, 'hostname; nvidia-smi -L; exit 5');
  const exit = once(channel, 'exit');
  const [out, error] = await Promise.all([text(channel), text(channel.stderr)]);
  expect([out, error, (await exit)[0]]).toEqual([
    expect.stringMatching(new RegExp(`^${pod.pod_name}\nGPU 0: `)),
    '',
    5,
  ]);

  const staying = await run(client, 'sleep infinity');
  const end = once(staying, 'exit');
  const shown = text(staying.stderr);
  staying.resume();
  await fixture.act(pod, 'stop', team);
  await fixture.until(pod, 'stopped');
  expect([137, 255]).toContain((await end)[0]);
  expect(await shown).toBe(`The pod ${pod.pod_name} has stopped or restarted.\n`);
  client.end();
});

it('bytes of a command take turns, both ways, under the name of their user', async () => {
  const pod = await fixture.running(team);
  const client = await logIn(pod);
  const queued = jest.spyOn(Turns.prototype, 'queue');
  const channel = await run(client, 'cat');
  const [bytes, back] = [Buffer.alloc(1_000_000, 'x'), text(channel)];
  channel.end(bytes);
  expect((await back).length).toBe(bytes.length);
  const [{ user_id }] = (await fixture.query<{ user_id: string }>('SELECT user_id FROM ssh_key', [])) as [
    { user_id: string },
  ];
  const turns = queued.mock.calls.filter(([who]) => who === user_id).length;
  queued.mockRestore();
  // What is read in pieces of 8 KiB at most, and what is written of 32 KiB.
  expect(turns).toBeGreaterThanOrEqual(bytes.length / 8_192 + bytes.length / 32_768 - 2);
  client.end();
});

it('connection-info shows the command that works, for pods that run', async () => {
  const [runs, waits] = [await fixture.running(team), await fixture.create(team, { name: 'pull-hang' })];
  const { data } = await connections();
  const sshOf = ({ pod_name }: Pod) => data.find((found) => found.pod_name === pod_name)?.ssh;
  const { pod_name: username } = runs;
  const command = `ssh -p ${port()} ${username}@ssh.example.com`;
  expect(sshOf(runs)).toEqual({ host: 'ssh.example.com', port: port(), username, command });
  expect(sshOf(waits)).toBeNull();
});
