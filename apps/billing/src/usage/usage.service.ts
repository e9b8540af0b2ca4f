import {
  readUsageEvents,
  requirePlatformAdmin,
  type CallContext,
  type RecordUsage,
  type UsageEvent,
  type UsageRecorded,
  type UsageTold,
} from '@atoll/contracts';
import { Transactions } from '@atoll/database';
import { invalidInput, type FieldError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TeamDirectory } from '@atoll/team-directory';
import { distinctFacts } from './distinct-facts.js';
import { FactStore } from './fact-store.js';
import { Timelines } from './timelines.js';

/** Clocks differ; a fact of the far future is a mistake. */
const mostAheadMs = 5 * 60_000;
/** The platform's own services tell their facts by events, and nobody else may speak for them. */
const ownSource = /^atoll-/;

@Injectable()
export class UsageService {
  constructor(
    private readonly transactions: Transactions,
    private readonly directory: TeamDirectory,
    private readonly facts: FactStore,
    private readonly timelines: Timelines,
  ) {}

  /** All of the batch or nothing. Once it is answered, every report asked afterwards has it. */
  async record({ events }: RecordUsage, context: CallContext): Promise<UsageRecorded> {
    requirePlatformAdmin(context.caller);
    refuse([...events.entries()].flatMap(([index, event]) => faultsOf(event, `events.${index}`)));
    refuse(await this.faultsOfTenancy(events));
    return this.transactions.once(context, (manager) => this.store(manager, events));
  }

  /** What a service of the platform tells in the transaction of its event. Never refused for a team that is not known yet: events may outrun one another. */
  async take(manager: EntityManager, source: string, { facts }: UsageTold): Promise<void> {
    await this.store(manager, readUsageEvents({ events: facts.map((fact) => ({ ...fact, source })) }));
  }

  private async store(manager: EntityManager, events: readonly UsageEvent[]): Promise<UsageRecorded> {
    const added = await this.facts.add(manager, distinctFacts(events));
    if (added.length > 0) await this.timelines.add(manager, added);
    return { accepted: added.length, duplicates: events.length - added.length };
  }

  private async faultsOfTenancy(events: readonly UsageEvent[]): Promise<FieldError[]> {
    const strangers = await this.directory.strangers(
      events.map(({ team_id, workspace_id }) => ({ teamId: team_id, workspaceId: workspace_id })),
    );
    if (strangers.size === 0) return [];
    const strange = [...events.entries()].filter(([, { team_id, workspace_id }]) => strangers.has(`${team_id} ${workspace_id}`));
    const teams = await this.directory.knownTeams(strange.map(([, { team_id }]) => team_id));
    return strange.map(([index, { team_id }]) =>
      teams.has(team_id)
        ? fault(`events.${index}.workspace_id`, 'must be a workspace of the team that team_id names')
        : fault(`events.${index}.team_id`, 'must be a team'),
    );
  }
}

function faultsOf({ source, time }: UsageEvent, path: string): FieldError[] {
  return [
    ...(ownSource.test(source) ? [fault(`${path}.source`, 'must not begin with atoll-, which is for the platform’s own services')] : []),
    ...(Date.parse(time) > Date.now() + mostAheadMs ? [fault(`${path}.time`, 'must not be more than 5 minutes ahead')] : []),
  ];
}

function fault(path: string, message: string): FieldError {
  return { path, code: path.slice(path.lastIndexOf('.') + 1), message: `${path} ${message}` };
}

function refuse(faults: FieldError[]): void {
  if (faults.length > 0) throw invalidInput(faults);
}
