import { contract, operation } from '../contract.js';
import { ListOf } from '../fields.js';
import { NumberedId } from '../id-fields.js';
import { ConnectionPod } from '../gpuaas/connection.js';
import { HoldingTeam } from '../gpuaas/holdings.js';

export class PodConnection extends ConnectionPod {
  @NumberedId()
  subscription_id!: string;
}

export class PodConnections {
  @ListOf(() => PodConnection, { max: 100_000 })
  data!: PodConnection[];
}

/** For the gpuaas service, which has authorised its caller: how the pods of a team are reached. */
export const podConnections = contract('pods.connections', {
  read: operation(HoldingTeam, PodConnections),
});
