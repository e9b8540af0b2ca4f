import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { newId } from '@atoll/database';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import type { ToldTeam } from '../gpuaas-fixture.js';
import { BaremetalFixture } from './baremetal-fixture.js';
import type { HostDriver } from './host-driver.js';
import { SimulatedHosts } from './simulated-hosts.js';

const deeds = ['createUser', 'placeKeys', 'setPassword', 'verify', 'revoke'] as const satisfies (keyof HostDriver)[];
const faults = ['', 'reach-refuse', 'user-drop', 'keys-fail', 'password-lie', 'verify-refuse', 'revoke-refuse', 'revoke-drop'];

const fault = fc.constantFrom(...faults);
const command = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ kind: 'request' as const }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), which: fc.nat(20) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('work' as const), steps: fc.integer({ min: 1, max: 12 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('pass' as const), seconds: fc.constantFrom(1, 3, 20, 200) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('break' as const), which: fc.nat(1), fault }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('crash' as const), deed: fc.constantFrom(...deeds), isAfter: fc.boolean() }) },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

let fixture: BaremetalFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

/** A world of two hosts, and what its observer knows by itself of the requests for them. */
class World {
  private readonly instances: { instance_id: string; isEnded: boolean; wasActive: boolean }[] = [];
  private crash: { deed: (typeof deeds)[number]; isAfter: boolean } | undefined;

  constructor(
    private readonly model: string,
    private readonly nodeIds: readonly string[],
  ) {}

  static async create(begun: readonly string[]): Promise<World> {
    const model = `law-${newId().slice(-10)}`;
    const specs = { gpu_model: model, gpu_count: 4, cpu_cores: 64, memory_gb: 512 };
    const nodeIds = [];
    for (const each of begun) nodeIds.push((await fixture.available(each, { specs })).node_id);
    return new World(model, nodeIds);
  }

  async obey(next: Command): Promise<void> {
    if (next.kind === 'request') {
      const { instance_id } = await fixture.request(team, { specs: { gpu_model: this.model } });
      this.instances.push({ instance_id, isEnded: false, wasActive: false });
    } else if (next.kind === 'end') {
      const instance = this.instances[next.which % Math.max(1, this.instances.length)];
      if (!instance) return;
      await fixture.end(team, instance);
      instance.isEnded = true;
    } else if (next.kind === 'work') for (let step = 0; step < next.steps; step += 1) await fixture.workOnce();
    else if (next.kind === 'pass') await fixture.pass(next.seconds);
    else if (next.kind === 'break') await this.rename(this.nodeIds[next.which] ?? '', next.fault);
    else this.crash = next;
  }

  /** The next call of this kind is the last of its worker: what it would have written is lost. */
  watch(): void {
    const hosts = fixture.gpuaas.get(SimulatedHosts);
    for (const deed of deeds) {
      const original = hosts[deed].bind(hosts);
      jest.spyOn(hosts, deed).mockImplementation(async (...inputs) => {
        if (this.crash?.deed !== deed) return original(...inputs);
        const { isAfter } = this.crash;
        this.crash = undefined;
        if (isAfter) await original(...inputs).catch(() => undefined);
        await fixture.gpuaas.query(
          'UPDATE baremetal_instance SET claim_token = gen_random_uuid(), claimed_until = clock_timestamp() WHERE claim_token IS NOT NULL',
        );
      });
    }
  }

  rename(nodeId: string, fault: string): Promise<unknown> {
    return fixture.gpuaas.query('UPDATE baremetal_node SET name = $2 WHERE node_id = $1', [nodeId, `law-${newId()}.${fault}`]);
  }

  /** What holds at every moment. */
  async check(): Promise<void> {
    const holders: string[] = [];
    for (const instance of this.instances) {
      const { status, host_specs } = await fixture.instance(team, instance);
      if (status === 'Active') instance.wasActive = true;
      // Once active it is ended by its team alone.
      if (instance.wasActive) expect(instance.isEnded ? ['Releasing', 'Released'] : ['Active']).toContain(status);
      if (['Provisioning', 'Active', 'Releasing'].includes(status) && host_specs) holders.push(instance.instance_id);
      const facts = (await fixture.factsOf(instance)).map(({ quantity }) => quantity);
      expect(facts).toEqual(!instance.wasActive ? [] : instance.isEnded ? ['1', '0'] : ['1']);
    }
    expect(holders.length).toBeLessThanOrEqual(this.nodeIds.length);
    for (const node_id of this.nodeIds) await this.checkHost(node_id);
  }

  /** Whoever may log in is known to the database, with that password, and holds this node. */
  private async checkHost(node_id: string): Promise<void> {
    const users = Object.entries(await fixture.usersOf({ node_id }));
    expect(users.length).toBeLessThanOrEqual(1);
    for (const [username] of users) {
      const known = await fixture.gpuaas.query(
        `SELECT FROM baremetal_instance i JOIN baremetal_node n ON n.instance_id = i.instance_id
         WHERE n.node_id = $1 AND i.username = $2 AND i.password IS NOT NULL`,
        [node_id, username],
      );
      expect([username, known.length]).toEqual([username, 1]);
    }
  }

  /** What holds once all is mended and at rest. */
  async checkEnd(): Promise<void> {
    this.crash = undefined;
    for (const nodeId of this.nodeIds) {
      await this.rename(nodeId, '');
      await fixture.gpuaas.query(`UPDATE baremetal_node SET is_maintenance = false WHERE node_id = $1 AND maintenance_code = 'failures'`, [
        nodeId,
      ]);
    }
    for (let round = 0; round < 3; round += 1) {
      await fixture.pass(601);
      await fixture.settle();
      await fixture.sweep();
    }
    await fixture.settle();
    await this.check();
    const found = await Promise.all(this.instances.map((instance) => fixture.instance(team, instance)));
    const nodes = await Promise.all(this.nodeIds.map((nodeId) => fixture.node(nodeId)));
    const active = found.filter(({ status }) => status === 'Active');
    for (const { status } of found) expect(['Requested', 'Active', 'Failed', 'Cancelled', 'Released']).toContain(status);
    expect(nodes.filter(({ status }) => status === 'In service')).toHaveLength(active.length);
    expect(nodes.filter(({ status }) => status === 'Available')).toHaveLength(nodes.length - active.length);
    const waiting = found.some(({ status }) => status === 'Requested');
    if (waiting) expect(active).toHaveLength(nodes.length);
    for (const instance of active) {
      const { username, ssh_password: password } = await fixture.credentials(team, instance);
      const hosts = await Promise.all(this.nodeIds.map((node_id) => fixture.usersOf({ node_id })));
      expect(hosts.filter((users) => users[username]?.password === password)).toHaveLength(1);
    }
    for (const instance of this.instances) await fixture.end(team, instance);
    await fixture.settle();
    for (const node_id of this.nodeIds) expect(await fixture.usersOf({ node_id })).toEqual({});
  }
}

it('law: whatever the order of requests, releases, failures and crashes, host and database agree, and all comes to rest', async () => {
  await fc.assert(
    fc.asyncProperty(fc.tuple(fault, fault), fc.array(command, { minLength: 10, maxLength: 30 }), async (begun, commands) => {
      const world = await World.create(begun);
      world.watch();
      try {
        for (const next of commands) {
          await world.obey(next);
          await world.check();
        }
        await world.checkEnd();
      } finally {
        jest.restoreAllMocks();
      }
    }),
    runs(15),
  );
}, 600_000);
