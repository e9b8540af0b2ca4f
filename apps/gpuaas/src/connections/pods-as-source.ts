import { type ConnectionPod } from '@atoll/contracts/gpuaas';
import { podConnections } from '@atoll/contracts/pods';
import { Rpc, systemContext } from '@atoll/rpc';
import { untilAborted } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { ConnectionSource } from './connection-source.js';

const patienceMs = 8_000;

/** The pods service, asked at each refresh. */
@Injectable()
export class PodsAsSource extends ConnectionSource {
  constructor(private readonly rpc: Rpc) {
    super();
  }

  async read(
    teamId: string,
    subscriptionIds: readonly string[],
    signal: AbortSignal,
  ): Promise<Map<string, ConnectionPod[]>> {
    const context = systemContext('gpuaas', { deadlineMs: patienceMs });
    const { data } = await untilAborted(signal, this.rpc.call(podConnections.read, { team_id: teamId }, context));
    const wanted = new Set(subscriptionIds);
    const found = new Map<string, ConnectionPod[]>();
    for (const { subscription_id, ...pod } of data) {
      if (wanted.has(subscription_id)) found.set(subscription_id, [...(found.get(subscription_id) ?? []), pod]);
    }
    return found;
  }
}
