import { StepFailed } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import { GpuaasSettings } from '../../gpuaas-settings.js';
import type { BaremetalInstanceEntity } from '../../model/baremetal-instance.entity.js';
import type { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';
import { BaremetalSecrets } from './baremetal-secrets.js';
import type { HostDriver, HostRef, Tenancy } from './host-driver.js';
import { SimulatedHosts } from './simulated-hosts.js';
import { SshHosts } from './ssh-hosts.js';

/** Why Atoll does not log in to such a node. Each log-in shows the host a password, but never a key. */
export const keyRequired =
  'Atoll sends no password to a host whose tenants get sudo. Set a private_key as its credential.';

/** The columns of an instance that a driver needs. */
export type Tenant = Pick<BaremetalInstanceEntity, 'instanceId' | 'username' | 'password' | 'proofKey'>;

/** From rows to hosts: the driver of a node, and its parameters. */
@Injectable()
export class HostAccess {
  private readonly ssh: HostDriver;

  constructor(
    settings: GpuaasSettings,
    private readonly secrets: BaremetalSecrets,
    private readonly simulated: SimulatedHosts,
  ) {
    this.ssh = new SshHosts({
      allowLoopback: settings.allowLoopbackHosts,
      maxConnections: settings.sshConnections,
      connectMs: settings.hostConnectMs,
      waitMs: settings.hostStepMs / 4,
    });
  }

  driverOf({ driver }: BaremetalNodeEntity): HostDriver {
    return driver === 'simulated' ? this.simulated : this.ssh;
  }

  /**
   * Whether the credential is a password and tenants get root, as on nodes of earlier releases. Not of one that cannot
   * be opened: a step on its host fails by that.
   */
  lacksKey(node: BaremetalNodeEntity): boolean {
    if (!node.tenantSudo) return false;
    try {
      return 'password' in this.secrets.openCredential(node);
    } catch {
      return false;
    }
  }

  /** Throws `StepFailed` where a key is required. */
  hostOf(node: BaremetalNodeEntity): HostRef {
    if (this.lacksKey(node)) throw new StepFailed('private_key_required', keyRequired, true);
    const { nodeId, name, driver, host, port, sshUser: user, hostKey } = node;
    const credential = this.secrets.openCredential(node);
    return { nodeId, name, driver, host, port, user, hostKey, credential };
  }

  /** `keys`: to be placed; `fence`: of the try. */
  tenancyOf(instance: Tenant, node: BaremetalNodeEntity, keys: readonly string[], fence: string): Tenancy {
    const { instanceId, username, password, proofKey } = instance;
    if (password === null || proofKey === null) throw new Error(`The instance ${instanceId} no longer has secrets.`);
    return {
      instanceId,
      username,
      password: this.secrets.openPassword({ instanceId, password }),
      proofKey: this.secrets.openProofKey({ instanceId, proofKey }),
      keys,
      hasSudo: node.tenantSudo,
      home: node.home,
      fence,
    };
  }
}
