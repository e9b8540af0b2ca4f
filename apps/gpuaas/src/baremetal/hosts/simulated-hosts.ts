import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Transactions } from '@atoll/database';
import { StepFailed, type StepContext } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { HostDriver, HostRef, Inspection, Tenancy } from './host-driver.js';
import type { SimulatedHostEntity } from './simulated-host.entity.js';

type SimulatedStep = 'inspect' | 'reach' | 'user' | 'keys' | 'password' | 'verify' | 'revoke';
type Fault = 'slow' | 'refuse' | 'fail' | 'hang' | 'lie' | 'drop' | 'login' | 'rekeyed';
type Users = SimulatedHostEntity['users'];

const named = /(inspect|reach|user|keys|password|verify|revoke)-(slow|refuse|fail|hang|lie|drop|login|rekeyed)/g;
const slowMs = 2_000;
const foreverMs = 2 ** 31 - 1;

/**
 * Hosts that do not exist. What goes wrong is chosen by the node's name, `<step>-<fault>`, such as
 * `metal-01.password-fail`. Faults: slow (2 s), refuse (worth another try), fail (for good), hang (no end), lie (says
 * it is done and is not), drop (done, but the answer is lost), login (the platform's log-in is refused), rekeyed
 * (another host key).
 */
@Injectable()
export class SimulatedHosts implements HostDriver {
  constructor(private readonly transactions: Transactions) {}

  async inspect(host: HostRef, context: StepContext): Promise<Inspection> {
    await this.suffer(host, 'inspect', context);
    await this.change(host, null, (users) => {
      const [left] = Object.keys(users);
      if (left !== undefined)
        throw new StepFailed('leftovers', `The host still has users of earlier instances: ${left}`, true);
    });
    const hostKey =
      host.hostKey ??
      `SHA256:${createHash('sha256').update(`simulated host ${host.name}`).digest('base64').slice(0, 43)}`;
    return {
      hostKey,
      fence: '0',
      // Each is one of its own.
      machineId: host.nodeId.padStart(32, '0'),
      found: { gpu_model: null, gpu_count: /few-gpus/.test(host.name) ? 1 : null, cpu_cores: null, memory_gb: null },
    };
  }

  async seen({ nodeId }: HostRef): Promise<string> {
    return this.transactions.run(async (manager) => (await lockHost(manager, nodeId)).fence);
  }

  look(host: HostRef, context: StepContext): Promise<void> {
    return this.reach(host, context);
  }

  async reach(host: HostRef, context: StepContext): Promise<void> {
    await this.suffer(host, 'reach', context);
  }

  createUser(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void> {
    const { username, instanceId, hasSudo: sudo } = tenancy;
    return this.perform(host, 'user', tenancy, context, (users) => {
      if (Object.values(users).some((user) => user.instanceId !== instanceId)) {
        throw new StepFailed('host_in_use', 'The host holds another instance.', true);
      }
      users[username] ??= { password: null, keys: [], instanceId, sudo };
    });
  }

  placeKeys(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void> {
    return this.perform(host, 'keys', tenancy, context, (users) => {
      userOf(users, tenancy).keys = [tenancy.proofKey.publicKey];
    });
  }

  changeKeys(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void> {
    return this.perform(host, 'keys', tenancy, context, (users) => {
      userOf(users, tenancy).keys = [...tenancy.keys];
    });
  }

  setPassword(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void> {
    return this.perform(host, 'password', tenancy, context, (users) => {
      userOf(users, tenancy).password = tenancy.password;
    });
  }

  verify(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void> {
    return this.perform(host, 'verify', tenancy, context, (users) => {
      const user = users[tenancy.username];
      if (user?.password !== tenancy.password) {
        throw new StepFailed('password_refused', 'The host refuses the log-in with the password that was just set.');
      }
      user.keys = [...tenancy.keys];
    });
  }

  revoke(host: HostRef, tenancy: Tenancy, context: StepContext): Promise<void> {
    return this.perform(host, 'revoke', tenancy, context, (users) => {
      delete users[tenancy.username];
    });
  }

  private async perform(
    host: HostRef,
    step: SimulatedStep,
    tenancy: Tenancy,
    context: StepContext,
    change: (users: Users) => void,
  ): Promise<void> {
    const fault = await this.suffer(host, step, context);
    context.signal.throwIfAborted();
    if (fault === 'lie') {
      if (step === 'revoke')
        throw new StepFailed('still_open', 'The host still accepts the password of the removed user.');
      return;
    }
    await this.change(host, tenancy.fence, change);
    if (fault === 'drop') throw new StepFailed('connection_lost', 'The connection to the host was lost.');
  }

  private async suffer({ name }: HostRef, step: SimulatedStep, context: StepContext): Promise<Fault | undefined> {
    const fault = [...name.matchAll(named)].find(([, of]) => of === step)?.[2] as Fault | undefined;
    if (fault === 'refuse') throw new StepFailed('host_refused', 'The host refuses connections on its SSH port.');
    if (fault === 'login') throw new StepFailed('login_refused', 'The host refuses the log-in.', true);
    if (fault === 'rekeyed')
      throw new StepFailed('host_key_changed', 'The host shows another host key than the one that is pinned.', true);
    if (fault === 'fail') throw new StepFailed(`${step}_failed`, `The host failed: ${step}.`, true);
    if (fault === 'slow') await delay(slowMs, undefined, { signal: context.signal });
    if (fault === 'hang') await delay(foreverMs, undefined, { signal: context.signal, ref: false });
    return fault;
  }

  /** Changes the users of the host, unless it was told something newer. `fence` null: only looks. */
  private change({ nodeId }: HostRef, fence: string | null, change: (users: Users) => void): Promise<void> {
    return this.transactions.run(async (manager) => {
      const { users, fence: seen } = await lockHost(manager, nodeId);
      if (fence !== null && BigInt(seen) > BigInt(fence)) {
        throw new StepFailed('superseded', 'The host has received a newer command.', true);
      }
      change(users);
      await manager.query('UPDATE simulated_host SET users = $2, fence = coalesce($3, fence) WHERE node_id = $1', [
        nodeId,
        JSON.stringify(users),
        fence,
      ]);
    });
  }
}

async function lockHost(manager: EntityManager, nodeId: string): Promise<{ users: Users; fence: string }> {
  await manager.query('INSERT INTO simulated_host (node_id) VALUES ($1) ON CONFLICT DO NOTHING', [nodeId]);
  const [host] = await manager.query<{ users: Users; fence: string }[]>(
    'SELECT * FROM simulated_host WHERE node_id = $1 FOR UPDATE',
    [nodeId],
  );
  if (!host) throw new Error('The simulated host is gone.');
  return host;
}

function userOf(users: Users, { username }: Tenancy): Users[string] {
  const user = users[username];
  if (!user) throw new StepFailed('user_missing', `The host has no user ${username}.`);
  return user;
}
