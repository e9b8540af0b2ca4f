import type { UsageEvent } from '@atoll/contracts/billing';
import { AppError } from '@atoll/errors';
import { nanoDigitsOf } from '../money/amounts.js';

/** What names a fact, for ever. */
export interface NamedFact {
  source: string;
  id: string;
}

/** A fact as it is stored, and where in its batch it stands. */
export interface Fact extends NamedFact {
  index: number;
  timeMs: number;
  sequence: number;
  /** Decimal digits of quantity × 10^9. */
  quantityNano: string;
  teamId: string;
  workspaceId: string;
  resourceId: string;
  resourceName: string | null;
  kind: string;
  sku: string;
  regionId: string | null;
  poolId: string | null;
  /** JSON with its names in order, so that equal attributes are equal text. */
  attributes: string | null;
}

/** The facts of a batch, each once. Throws `conflict` where two have one (source, id) and other content. */
export function distinctFacts(events: readonly UsageEvent[]): Fact[] {
  const facts = new Map<string, Fact>();
  for (const [index, event] of events.entries()) {
    const fact = factOf(event, index);
    const name = nameOf(fact);
    const known = facts.get(name);
    if (!known) facts.set(name, fact);
    else if (!isSame(known, fact)) throw conflictOf([fact]);
  }
  return [...facts.values()];
}

export function nameOf({ source, id }: NamedFact): string {
  return `${source}\0${id}`;
}

/** One (source, id) is one fact for ever. */
export function conflictOf(facts: readonly Fact[]): AppError {
  const errors = facts.map(({ index, source, id }) => ({
    path: `events.${index}`,
    code: 'otherContent',
    message: `events.${index}: the id ${id} of the source ${source} was already used for a different fact`,
  }));
  return new AppError('conflict', `${errors[0]?.message}. No fact of the batch was stored.`, { errors });
}

function factOf(event: UsageEvent, index: number): Fact {
  return {
    index,
    source: event.source,
    id: event.id,
    timeMs: Date.parse(event.time),
    sequence: event.sequence ?? 0,
    quantityNano: nanoDigitsOf(event.quantity),
    teamId: event.team_id,
    workspaceId: event.workspace_id,
    resourceId: event.resource_id,
    resourceName: event.resource_name ?? null,
    kind: event.kind,
    sku: event.sku,
    regionId: event.region_id ?? null,
    poolId: event.pool_id ?? null,
    attributes: event.attributes ? JSON.stringify(event.attributes, Object.keys(event.attributes).sort()) : null,
  };
}

function isSame({ index: _one, ...known }: Fact, { index: _other, ...fact }: Fact): boolean {
  return JSON.stringify(known) === JSON.stringify(fact);
}
