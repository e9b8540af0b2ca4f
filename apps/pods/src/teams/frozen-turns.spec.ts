import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { UserCaller } from '@atoll/contracts';
import { sshKeys, vms } from '@atoll/contracts/pods';
import { newId, takeTurn } from '@atoll/database';
import { generateKeyPair } from '@atoll/ssh';
import { lockWaits, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16 });
});
afterAll(() => fixture.stop());

/** Takes a turn in the database and keeps it, as another replica does that freezes with it, until `thaw` is called. */
async function freezeWith(turn: string): Promise<{ thaw: () => Promise<void> }> {
  const runner = fixture.app.get(DataSource, { strict: false }).createQueryRunner();
  await runner.startTransaction();
  await runner.query('SET LOCAL idle_in_transaction_session_timeout = 0');
  await takeTurn(runner.manager, turn);
  const thaw = async () => {
    await runner.rollbackTransaction();
    await runner.release();
  };
  return { thaw };
}

const addKey = (userId: string) => {
  const user: Partial<UserCaller> = { userId, scope: 'user' };
  return fixture.call(sshKeys.add, { public_key: generateKeyPair().publicKey }, user);
};

interface Case {
  turnOf: (team: ToldTeam, userId: string) => string;
  create: (team: ToldTeam, userId: string) => Promise<object>;
}
const cases: Record<string, Case> = {
  VMs: {
    turnOf: ({ team_id }) => `vm ${team_id}`,
    create: (team) => fixture.createVm(team, { name: `vm-${newId()}` }),
  },
  'shared volumes': {
    turnOf: ({ team_id }) => `shared_volume ${team_id}`,
    create: (team) => fixture.createVolume(team),
  },
  'SSH keys': { turnOf: (_, userId) => `ssh_key ${userId}`, create: (_, userId) => addKey(userId) },
};

describe('a replica that freezes in the middle of creating', () => {
  it.each(Object.entries(cases))(
    '%s holds up those of one owner, with one connection, and nobody else',
    async (_, { turnOf, create }) => {
      const [busy, busyUser] = [await fixture.team(), newId()];
      const { thaw } = await freezeWith(turnOf(busy, busyUser));
      const created = Promise.all(Array.from({ length: 24 }, () => create(busy, busyUser)));
      await untilLockWaits(fixture, { text: 'advisory', unless: created });
      for (let round = 0; round < 3; round += 1) {
        await create(await fixture.team(), newId());
        expect(await lockWaits(fixture, 'advisory')).toHaveLength(1);
      }
      await thaw();
      expect(await created).toHaveLength(24);
    },
  );
});
