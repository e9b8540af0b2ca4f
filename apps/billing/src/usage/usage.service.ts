import { requirePlatformAdmin, type CallContext } from '@atoll/contracts';
import {
  readUsageEvents,
  type UsageBatch,
  type UsageEvent,
  type UsageRecorded,
  type UsageTold,
} from '@atoll/contracts/billing';
import { Transactions } from '@atoll/database';
import { invalidInput, type FieldError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { distinctFacts } from './distinct-facts.js';
import { FactStore } from './fact-store.js';
import { Tenancy } from './tenancy.js';
import { Timelines } from './timelines.js';
import { faultOf } from './usage-fault.js';

/** Clocks differ; a fact of the far future is a mistake. */
const mostAheadMs = 5 * 60_000;
/** The platform's own services report their facts as events, and nobody else may report facts in their name. */
const ownSource = 'atoll-';

@Injectable()
export class UsageService {
  constructor(
    private readonly transactions: Transactions,
    private readonly tenancy: Tenancy,
    private readonly facts: FactStore,
    private readonly timelines: Timelines,
  ) {}

  /** All of the batch or nothing. Once it is answered, every report asked afterwards has it. */
  async record({ events }: UsageBatch, context: CallContext): Promise<UsageRecorded> {
    requirePlatformAdmin(context.caller);
    refuse(faultsOf(events));
    refuse(await this.tenancy.faultsOf(events));
    return this.transactions.once(context, (manager) => this.store(manager, events));
  }

  /**
   * What a service of the platform publishes, in the transaction of its event. A team that is not known yet is no
   * fault: events may outrun one another.
   */
  async take(manager: EntityManager, source: string, { facts }: UsageTold): Promise<void> {
    await this.store(manager, readUsageEvents({ events: facts.map((fact) => ({ ...fact, source })) }));
  }

  private async store(manager: EntityManager, events: readonly UsageEvent[]): Promise<UsageRecorded> {
    const added = await this.facts.add(manager, distinctFacts(events));
    if (added.length > 0) await this.timelines.add(manager, added);
    return { accepted: added.length, duplicates: events.length - added.length };
  }
}

function faultsOf(events: readonly UsageEvent[]): FieldError[] {
  const faults: FieldError[] = [];
  const latestMs = Date.now() + mostAheadMs;
  for (const [index, { source, time }] of events.entries()) {
    if (source.startsWith(ownSource)) {
      faults.push(
        faultOf(index, 'source', `must not begin with ${ownSource}, which is for the platform’s own services`),
      );
    }
    if (Date.parse(time) > latestMs) faults.push(faultOf(index, 'time', 'must not be more than 5 minutes ahead'));
  }
  return faults;
}

function refuse(faults: FieldError[]): void {
  if (faults.length > 0) throw invalidInput(faults);
}
