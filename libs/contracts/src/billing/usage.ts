import { ApiProperty } from '@nestjs/swagger';
import { ArrayMaxSize, ArrayMinSize, IsObject } from 'class-validator';
import { contract, event, operation } from '../contract.js';
import { ListOf } from '../fields.js';
import { readRequestedUsage, readUsageEvents } from './usage-check.js';
import { UsageEvent } from './usage-event.js';

/**
 * As it is requested. Reads itself: a thousand facts are too many for a validator that looks at each by its decorators.
 */
export class RecordUsage {
  @ListOf(() => UsageEvent, { min: 1, max: 1000 })
  events!: UsageEvent[];

  /** Throws `invalid_input` that names each fault by the index of its event. */
  static fromWire(plain: unknown): RecordUsage {
    return Object.assign(new RecordUsage(), { events: readRequestedUsage(plain) });
  }
}

/** As it is passed on: quantities are decimal text, which goes through no float. */
export class UsageBatch {
  events!: UsageEvent[];

  /** As that of `RecordUsage`. */
  static fromWire(plain: unknown): UsageBatch {
    return Object.assign(new UsageBatch(), { events: readUsageEvents(plain) });
  }
}

export class UsageRecorded {
  @ApiProperty({ type: 'integer', example: 3, description: 'Number of facts that are new.' })
  accepted!: number;

  @ApiProperty({
    type: 'integer',
    example: 0,
    description: 'Number of facts that were known already, with the same content.',
  })
  duplicates!: number;
}

export const usage = contract('billing.usage', {
  record: operation(UsageBatch, UsageRecorded),
});

/** Facts as the platform’s own services tell them: as `UsageEvent`, without a source, which is the service. */
export class UsageTold {
  @ArrayMinSize(1)
  @ArrayMaxSize(1000)
  @IsObject({ each: true })
  facts!: Omit<UsageEvent, 'source'>[];
}
/** What pool subscriptions and bare metal hold. Recorded with the source `atoll-gpuaas`. */
export const gpuUsageTold = event('gpuaas.usage_told', UsageTold);
/** What pods, VMs and volumes hold. Recorded with the source `atoll-pods`. */
export const podUsageTold = event('pods.usage_told', UsageTold);
