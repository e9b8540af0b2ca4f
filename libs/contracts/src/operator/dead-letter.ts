import { platformServices, type PlatformService } from '@atoll/service-names';
import { ApiPropertyOptional, IntersectionType } from '@nestjs/swagger';
import { contract, operation, type Contract } from '../contract.js';
import { Instant, ListOf, OneOf, Text, WholeNumber } from '../fields.js';
import { Uuid } from '../id-fields.js';
import { Nothing } from '../page.js';
import { ComposedOfServices } from './services.js';

/** Longest excerpt of a payload, characters. */
export const payloadExcerptLimit = 4_000;

/** Microseconds since 1970, and the id of a dead letter. */
const cursorForm = /^(?:0|[1-9]\d{0,15})_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const cursorField = {
  max: 53,
  pattern: cursorForm,
  patternHint: 'a `next_cursor`, as it was answered',
  example: '1790000000000000_0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10',
};

/** The next dead letters after a place in their listing, the latest failure first. */
export class DeadLettersAfter {
  @Text({
    ...cursorField,
    optional: true,
    description: 'The `next_cursor` of the page before; the first page if left out.',
  })
  cursor?: string;

  @ApiPropertyOptional({ default: 20 })
  @WholeNumber({ min: 1, max: 100, optional: true, description: 'Entries per page, 1 to 100.', example: 20 })
  limit?: number;
}

class DeadLettersOf {
  @OneOf('PlatformService', platformServices, {
    optional: true,
    description: 'The service whose dead letters are listed; all if left out.',
  })
  service?: PlatformService;
}

export class ListDeadLetters extends IntersectionType(DeadLettersOf, DeadLettersAfter) {}

export class DeadLetterPath {
  @OneOf('PlatformService', platformServices, {
    example: 'billing',
    description: 'The service that could not handle the event.',
  })
  service!: PlatformService;

  @Uuid({ example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10', description: 'Id of the dead letter.' })
  dead_letter_id!: string;
}

/** An event that one consumer of a service could not handle. */
export class FailedEvent extends DeadLetterPath {
  @Text({ ...cursorField, description: 'Place of the entry: the `cursor` of the page that begins after it.' })
  cursor!: string;

  @Text({ max: 200, example: 'subscriptions', description: 'The consumer that could not handle the event.' })
  consumer!: string;

  @Uuid({ description: 'Id of the event.' })
  event_id!: string;

  @Text({ max: 200, example: 'teams.team_updated', description: 'Name of the event.' })
  event_name!: string;

  @Text({
    min: 0,
    max: payloadExcerptLimit,
    multiline: true,
    example: '{"team_id": "0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10"}',
    description: `Payload of the event as JSON; its first ${payloadExcerptLimit} characters.`,
  })
  payload!: string;

  @Instant({ description: 'Instant of what the event reports.' })
  occurred_at!: string;

  @Text({ max: 200, nullable: true, description: 'Id of the request that led to the event.' })
  request_id!: string | null;

  @Text({
    min: 0,
    max: 4_000,
    multiline: true,
    example: 'Error: the printer is out of paper',
    description: 'Error of the last try.',
  })
  error!: string;

  @WholeNumber({ min: 0, max: 1_000_000_000, example: 5, description: 'Failed tries.' })
  tries!: number;

  @Instant({ description: 'Instant of the first failure.' })
  first_failed_at!: string;

  @Instant({ description: 'Instant of the last failure.' })
  last_failed_at!: string;

  @Instant({
    nullable: true,
    example: null,
    description: 'Instant at which another try was requested; null if none is pending.',
  })
  replay_requested_at!: string | null;
}

/** What one service answers. */
export class DeadLettersOfService {
  @ListOf(() => FailedEvent, { max: 100 })
  data!: FailedEvent[];

  @Text({ ...cursorField, nullable: true })
  next_cursor!: string | null;
}

export class DeadLetterPage extends ComposedOfServices {
  @ListOf(() => FailedEvent, { max: 100, description: 'Dead letters, the latest failure first.' })
  data!: FailedEvent[];

  @Text({ ...cursorField, nullable: true, description: 'Place of the next page, for `cursor`; null after the last.' })
  next_cursor!: string | null;
}

type DeadLetterOperations = Contract<{
  list: { input: typeof DeadLettersAfter; output: typeof DeadLettersOfService };
  replay: { input: typeof DeadLetterPath; output: typeof FailedEvent };
  drop: { input: typeof DeadLetterPath; output: typeof Nothing };
}>;

/** What the library of events answers to the operator for each service. */
export function deadLetters(service: string): DeadLetterOperations {
  return contract(`${service}.dead_letters`, {
    list: operation(DeadLettersAfter, DeadLettersOfService),
    replay: operation(DeadLetterPath, FailedEvent),
    drop: operation(DeadLetterPath, Nothing),
  });
}
