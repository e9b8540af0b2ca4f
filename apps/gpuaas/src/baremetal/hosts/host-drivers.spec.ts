import { describe } from '@jest/globals';
import { describeWhere, hostsLack } from '@atoll/testing';
import { BaremetalFixture } from '../baremetal-fixture.js';
import { describeContract, type HostUnderContract } from './host-driver-contract-fixture.js';
import { SimulatedHosts } from './simulated-hosts.js';
import { startSshHostUnderContract } from './ssh-host-fixture.js';

async function simulated(): Promise<HostUnderContract> {
  const fixture = await BaremetalFixture.start();
  const { node_id, host, port } = await fixture.available();
  return {
    driver: fixture.gpuaas.get(SimulatedHosts),
    host: {
      nodeId: node_id,
      name: 'metal',
      driver: 'simulated',
      host,
      port,
      user: 'root',
      credential: { password: 'operator' },
      hostKey: null,
    },
    opens: async (username, secret) => {
      const user = (await fixture.usersOf({ node_id }))[username];
      return 'password' in secret ? user?.password === secret.password : user?.keys.includes(secret.publicKey) === true;
    },
    stop: () => fixture.stop(),
  };
}

describe('a simulated host', () => describeContract(simulated));

describeWhere(hostsLack(), 'a real host', () => {
  describe('by the password of root', () => describeContract(() => startSshHostUnderContract()));
  describe('by the key of a user with password-less sudo', () =>
    describeContract(() => startSshHostUnderContract({ isSudoer: true })));
});
