import { expect, it } from '@jest/globals';
import { generateKeyPair } from '@atoll/ssh';
import { timeoutFactor } from '@atoll/testing';
import { createTeam, fresh, succeed, until } from './client.js';
import { createNode } from './gpu-inventory.js';
import { MortalPlatform } from './mortal-platform.js';

const storyMs = 120_000 * timeoutFactor;
const mortal = new MortalPlatform();
const { operated } = mortal;

it(
  'a VM lets in the SSH keys of the members whose role may use it, and is told of each change, also after a crash',
  async () => {
    await mortal.start();
    const access = (key = operated.adminKey) => ({ url: operated.url, key });
    const { regionId } = await createNode({ platform: operated });
    // The operator, who names no owner, is the owner.
    const { team, keys, ids } = await createTeam(fresh('Virtual'), ['member'], operated);
    await succeed('POST', '/vm/flavour', { ...access(), body: { name: 'small', vcpus: 4, memory_gb: 16 } });
    const addKey = async () => {
      const { publicKey: public_key } = generateKeyPair();
      return succeed<{ ssh_key_id: string; public_key: string }>('POST', '/user/ssh-key', { ...access(), body: { public_key } });
    };
    const first = await addKey();
    const { instance_id } = await succeed<{ instance_id: string }>('POST', '/vm', {
      ...access(keys.member),
      body: { team_id: team.id, region_id: regionId, name: 'head-node', flavour: 'small', image: 'debian:13' },
    });
    await until(
      () => succeed<{ status: string }>('GET', `/vm/${instance_id}`, access(keys.member)),
      ({ status }) => status === 'running',
      30_000,
    );
    const letsIn = async () =>
      (await mortal.query<{ keys: string[] }>(`SELECT spec->'sshKeys' AS keys FROM simulated_cluster.run WHERE id = $1`, [instance_id]))
        .flatMap((run) => run.keys)
        .toSorted();
    const comesTo = async (wanted: { public_key: string }[]) => {
      const lines = wanted.map(({ public_key }) => public_key.split(' ').slice(0, 2).join(' ')).toSorted();
      expect(await until(letsIn, (found) => found.join() === lines.join(), 30_000)).toEqual(lines);
    };
    await comesTo([first]);
    const second = await addKey();
    await comesTo([first, second]);
    await mortal.kill('pods');
    await succeed('DELETE', `/user/ssh-key/${first.ssh_key_id}`, access());
    await comesTo([second]);
    await succeed('PUT', `/team/${team.id}/members/${ids.member}`, { ...access(), body: { role: 'team_owner' } });
    const { id } = await succeed<{ id: string }>('GET', '/user/profile', access());
    await succeed('DELETE', `/team/${team.id}/members/${id}`, access());
    await comesTo([]);
  },
  storyMs,
);
