import type { EventType } from '@atoll/contracts';
import type { UsageAttributes, UsageKind, UsageTold } from '@atoll/contracts/billing';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';

/** Each of some hundred bytes. */
const factsPerEvent = 100;

/** What ids of facts begin with, where that is not the kind. */
const idPrefixes: Partial<Record<UsageKind, string>> = { gpuaas_pool: 'subscription', shared_storage: 'volume' };

/** What is held of a resource from a transition of its row on. */
export interface HeldUsage {
  readonly row: {
    readonly teamId: string;
    readonly workspaceId: string;
    readonly revision: number;
    readonly enteredAt: Date;
  };
  readonly kind: UsageKind;
  /** Of the resource, among those of its kind. */
  readonly id: string;
  readonly name: string | null;
  readonly sku: string;
  /** Whole units of the SKU; 0: it is no longer held. */
  readonly quantity: number;
  readonly regionId: string;
  readonly poolId?: string;
  readonly attributes?: UsageAttributes;
  /** Since when; the row's `enteredAt` unless given. */
  readonly at?: Date;
  /** Tells the facts of a resource apart; the row's `revision` unless given. */
  readonly mark?: string;
}

/** Publishes for billing what teams hold, in the transaction that changes it: so each fact once, and none without. */
@Injectable()
export class UsageTeller {
  constructor(private readonly outbox: Outbox) {}

  /** `event` is that of the service. A fact counts once, however often it is published. */
  async tell(manager: EntityManager, event: EventType<UsageTold>, held: readonly HeldUsage[]): Promise<void> {
    const facts = held.map(factOf);
    for (let first = 0; first < facts.length; first += factsPerEvent) {
      await this.outbox.add(manager, event, { facts: facts.slice(first, first + factsPerEvent) });
    }
  }
}

function factOf({ row, kind, id, ...held }: HeldUsage): UsageTold['facts'][number] {
  return {
    id: `${idPrefixes[kind] ?? kind}:${id}:${held.mark ?? row.revision}`,
    time: (held.at ?? row.enteredAt).toISOString(),
    sequence: row.revision,
    resource_id: `${kind}:${id}`,
    resource_name: held.name ?? undefined,
    kind,
    sku: held.sku,
    quantity: String(held.quantity),
    team_id: row.teamId,
    workspace_id: row.workspaceId,
    region_id: held.regionId,
    pool_id: held.poolId,
    attributes: held.attributes,
  };
}
