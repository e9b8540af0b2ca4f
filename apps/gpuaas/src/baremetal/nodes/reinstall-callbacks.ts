import { timingSafeEqual } from 'node:crypto';
import { notFound, type Nothing } from '@atoll/contracts';
import { type ReinstallCallback } from '@atoll/contracts/gpuaas';
import { Transactions } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { BaremetalNodeSteps } from './baremetal-node-steps.js';
import { BaremetalSecrets } from '../hosts/baremetal-secrets.js';

/** Receives the callbacks of reinstall hooks. */
@Injectable()
export class ReinstallCallbacks {
  constructor(
    private readonly transactions: Transactions,
    private readonly nodes: BaremetalNodeSteps,
    private readonly secrets: BaremetalSecrets,
  ) {}

  /** Its token opens nothing else, and once. Throws `not_found` for any other. */
  async receive({ token, status, reason, host_key }: ReinstallCallback): Promise<Nothing> {
    const nodeId = /^([1-9]\d{0,14})\./.exec(token)?.[1];
    if (nodeId === undefined) throw notFound('reinstall');
    return this.transactions.run(async (manager) => {
      const node = await this.nodes.lock(manager, nodeId);
      if (node?.state !== 'reinstalling' || node.reinstallToken === null) throw notFound('reinstall');
      if (!isEqual(this.secrets.openReinstallToken(nodeId, node.reinstallToken), token)) throw notFound('reinstall');
      const cause = { actor: 'system:reinstall-hook' };
      if (status === 'done') {
        await this.nodes.move(manager, node, 'CHECK', cause, { reinstallToken: null, hostKey: host_key ?? null });
        return {};
      }
      const message = `The host could not be reinstalled: ${reason ?? 'the hook gave no reason'}`;
      await this.nodes.move(
        manager,
        node,
        'SPOIL',
        cause,
        { reinstallToken: null },
        { code: 'reinstall_failed', message },
      );
      return {};
    });
  }
}

function isEqual(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}
