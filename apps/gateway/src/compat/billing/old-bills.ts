import { ApiProperty } from '@nestjs/swagger';
import { ShownList, ShownMap, ShownNumber, ShownObject, ShownText } from '../http/old-answers.js';
import type { ExactNumber } from '../http/exact.js';

const hours = 'Units × hours: instance hours, vGPU hours, GB hours.';
const cost = 'Cost: the exact decimal.';

export class OldInstanceBill {
  @ShownText('Id of the instance.')
  instance_id!: string;

  @ShownText('Name of the instance.')
  instance_name!: string;

  @ShownNumber(hours)
  hours!: ExactNumber;

  @ShownNumber(cost)
  cost!: ExactNumber;
}

/** A bill, of all kinds; its instances are pods, VMs and bare-metal hosts. */
export class OldBill {
  @ShownNumber(cost)
  total_cost!: ExactNumber;

  @ShownNumber('Instance hours and vGPU hours; storage has none here.')
  total_hours!: ExactNumber;

  @ShownText('Currency (ISO 4217).', { example: 'USD' })
  currency!: string;

  @ShownList(() => OldInstanceBill, 'Pods, VMs and bare-metal hosts.')
  instances!: OldInstanceBill[];
}

class OldCurrency {
  @ShownText('Currency (ISO 4217).', { example: 'USD' })
  code!: string;

  @ShownText('Symbol of the currency.', { example: '$' })
  symbol!: string;
}

class PoolSummary {
  @ShownText('Name of the pool.')
  pool_name!: string;

  @ShownNumber('vGPU hours.')
  pool_hours!: ExactNumber;

  @ShownNumber(cost)
  total!: ExactNumber;

  @ShownNumber('Price of a vGPU hour; the exact mean where several prices applied.')
  subscription_rate!: ExactNumber;
}

class StorageSummary {
  @ShownText('Name of the volume.')
  storage_name!: string;

  @ShownNumber('GB hours.')
  hours!: ExactNumber;

  @ShownNumber(cost)
  cost!: ExactNumber;
}

class InstanceSummary {
  @ShownText('Name of the instance.')
  instance_name!: string;

  @ShownNumber(hours)
  hours!: ExactNumber;

  @ShownNumber(cost)
  cost!: ExactNumber;
}

export class OldSummary {
  @ShownNumber(cost)
  total_cost!: ExactNumber;

  @ShownNumber('Instance hours and vGPU hours.')
  total_hours!: ExactNumber;

  @ShownNumber('vGPU hours.')
  pool_hours!: ExactNumber;

  @ShownNumber('Instance hours.')
  instance_hours!: ExactNumber;

  @ShownNumber('Base fee: none.')
  monthly_base_cost!: ExactNumber;

  @ShownObject(() => OldCurrency, 'Currency of all costs.')
  currency!: OldCurrency;

  @ShownList(() => PoolSummary, 'GPU pools.')
  gpuaas_summary!: PoolSummary[];

  @ShownList(() => StorageSummary, 'Shared volumes.')
  shared_storage_billing_summary!: StorageSummary[];

  @ShownList(() => InstanceSummary, 'Pods, VMs and bare-metal hosts.')
  instance_billing_summary!: InstanceSummary[];
}

export class OldCost {
  @ShownNumber(cost)
  cost!: ExactNumber;
}

/** What an instance costs is one amount here: the rate. */
const resourceNames = ['CPU', 'RAM', 'Ephemeral Storage', 'GPU', 'Subscription Rate', 'TFlops', 'vRAM'] as const;

export class ResourceCosts {
  @ShownMap(OldCost, `Costs by resource: ${resourceNames.join(', ')}.`)
  Resources!: Record<string, OldCost>;
}

export function resourceCosts(rate: ExactNumber, none: ExactNumber): ResourceCosts {
  return {
    Resources: Object.fromEntries(
      resourceNames.map((name) => [name, { cost: name === 'Subscription Rate' ? rate : none }]),
    ),
  };
}

export class OldInstanceIntervals {
  @ShownText('Name of the instance.')
  instance_name!: string;

  @ShownNumber(cost)
  total_cost!: ExactNumber;

  @ShownMap(ResourceCosts, 'Costs by interval.')
  intervals!: Record<string, ResourceCosts>;
}

export class OldWorkspaceBill {
  @ShownText('Name of the workspace.')
  workspace_name!: string;

  @ShownMap(
    OldInstanceIntervals,
    'Pods, VMs and bare-metal hosts by id. Pools and volumes are in reports of their own.',
  )
  instances!: Record<string, OldInstanceIntervals>;
}

export class OldWorkspacesBill {
  @ShownMap(OldWorkspaceBill, 'Workspaces by id.')
  billing_by_workspace!: Record<string, OldWorkspaceBill>;

  @ShownText('Currency (ISO 4217).', { example: 'USD' })
  currency_code!: string;

  @ShownText('Symbol of the currency.', { example: '$' })
  currency_symbol!: string;

  @ShownText('Name of the pricing policy.')
  pricing_policy!: string;

  @ShownText('Name of the resource policy.')
  resource_policy!: string;

  @ShownNumber('Base fee: none.')
  monthly_cost!: ExactNumber;

  @ShownNumber('Cost of the range asked for, of all kinds.')
  current_month_total_cost!: ExactNumber;
}

export class StorageInterval {
  @ShownNumber(cost)
  cost!: ExactNumber;

  @ShownNumber('GB hours.')
  hours!: ExactNumber;
}

export class OldStorageBill {
  @ShownNumber(cost)
  total_cost!: ExactNumber;

  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'object', additionalProperties: { $ref: '#/components/schemas/StorageInterval' } },
    description: 'Volumes by name, each by interval.',
  })
  details!: Record<string, Record<string, StorageInterval>>;
}

export class PoolInterval {
  @ShownNumber(cost)
  interval_cost!: ExactNumber;

  @ShownNumber('vGPU hours.')
  interval_hours!: ExactNumber;

  @ShownObject(() => OldCost, 'The cost once more: all of it is the rate.')
  SubscriptionRate!: OldCost;

  @ShownObject(() => OldCost, 'No cost.')
  GPU!: OldCost;

  @ShownObject(() => OldCost, 'No cost.')
  vRAM!: OldCost;

  @ShownObject(() => OldCost, 'No cost.')
  CPU!: OldCost;

  @ShownObject(() => OldCost, 'No cost.')
  RAM!: OldCost;

  @ShownObject(() => OldCost, 'No cost.')
  EphimeralStorage!: OldCost;
}

export class PoolBill {
  @ShownText('Board of the pool.', { example: 'A100-80GB' })
  model_type!: string;

  @ShownText('Vendor of the board.', { example: 'NVIDIA' })
  vendor_type!: string;

  @ShownMap(PoolInterval, 'Costs by interval.')
  intervals!: Record<string, PoolInterval>;
}

export class OldPoolsBill {
  @ShownNumber(cost)
  total_cost!: ExactNumber;

  @ShownMap(PoolBill, 'Pools by name.')
  details!: Record<string, PoolBill>;
}
