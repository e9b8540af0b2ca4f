import { applyDecorators } from '@nestjs/common';
import type { CallContext, Operation, Wire } from '@atoll/contracts';
import type { BilledGroup, BillingBucket, BillingInterval } from '@atoll/contracts/billing';
import { AppError, isAppError } from '@atoll/errors';
import type { Rpc } from '@atoll/rpc';
import { ConfigureRoute } from '../../http/route-config.js';
import { nanoOf, quantityNanoOf } from '../http/exact.js';
import { withFaults, type ToldAs } from '../http/old-faults.js';
import { OldAnswers } from '../http/old-answers.js';

/** A report is read here, not only passed on: what takes longer to read than a few milliseconds is not. */
const mostBytes = 4 * 1024 * 1024;

const tooLong =
  'The report is longer than the 4 MiB that the compatibility mount reads. A longer interval or a shorter range makes it shorter, ' +
  'but not where it lists too many instances, pools or volumes: then read the bill of the team on the main API.';

/** Reports over thousands of instances take seconds to be made, and several are made for one call. */
const deadlineMs = 20_000;

/** The success of a call that answers with what was billed. `remark`: sentences of its description. */
export function OldReport(type: Wire, summary: string, remark = ''): MethodDecorator {
  const description = `${remark} Requires team_owner, team_admin or billing_viewer.`.trim();
  return applyDecorators(ConfigureRoute({ deadlineMs }), OldAnswers(type, summary, description));
}

/**
 * Asks for a report of the billing service. Throws `invalid_input` for one that is too long to be read here, and for
 * faults of the input, each by `toldAs` where the call has other fields than the report.
 */
export async function askReport<Input extends object, Output extends object>(
  rpc: Rpc,
  operation: Operation<Input, Output>,
  input: NoInfer<Input>,
  context: CallContext,
  toldAs: ToldAs = (fault) => fault,
): Promise<Output> {
  const json = await rpc.callForJson(operation, input, context).catch((error: unknown) => {
    // Who bills each hour of a year asks for the one that clocks skip too: it costs nothing.
    if (!isSkipped(error)) throw withFaults(error, toldAs);
    return rpc.callForJson(operation, { ...input, ...emptyRange }, context);
  });
  const parts = typeof json === 'string' ? [Buffer.from(json)] : json;
  if (parts.reduce((sum, { length }) => sum + length, 0) > mostBytes) {
    throw new AppError('invalid_input', tooLong);
  }
  return JSON.parse(typeof json === 'string' ? json : Buffer.concat(parts).toString('utf8')) as Output;
}

/** Before there was any usage. */
const emptyRange = { start_date: '2000-01-02T00:00:00', end_date: '2000-01-02T01:00:00' };

function isSkipped(error: unknown): boolean {
  return isAppError(error) && error.details.errors?.some(({ code }) => code === 'skippedByClocks') === true;
}

/** What was used, in 10^-9: of the currency, and units × hours. */
export interface Used {
  costNano: bigint;
  hoursNano: bigint;
}

export function hoursNanoOf(items: readonly { unit_hours: number }[]): bigint {
  return items.reduce((sum, { unit_hours }) => sum + quantityNanoOf(unit_hours), 0n);
}

const keyLengths: Record<BillingInterval, number> = { monthly: 7, weekly: 10, daily: 10, hourly: 13 };

/** The name of an interval: that of its month, day or hour on the wall clock. */
function keyOf({ start }: BillingBucket, interval: BillingInterval): string {
  return start.slice(0, keyLengths[interval]);
}

/**
 * What a group used by interval, in their order, without those in which it used nothing. An hour that the clocks show
 * twice is one.
 */
export function usedByInterval({ intervals }: BilledGroup, interval: BillingInterval): [key: string, used: Used][] {
  const byKey = new Map<string, Used>();
  for (const bucket of intervals) {
    if (bucket.items.length === 0 && bucket.cost === '0') continue;
    const key = keyOf(bucket, interval);
    const { costNano, hoursNano } = byKey.get(key) ?? { costNano: 0n, hoursNano: 0n };
    byKey.set(key, { costNano: costNano + nanoOf(bucket.cost), hoursNano: hoursNano + hoursNanoOf(bucket.items) });
  }
  return [...byKey];
}

/** Names that are unique: of those that occur twice each has its id behind it. */
export function uniqueNames(named: readonly { name: string; id: string }[]): string[] {
  const counts = Map.groupBy(named, ({ name }) => name);
  const taken = new Set<string>(counts.keys());
  return named.map(({ name, id }) => {
    if (counts.get(name)?.length === 1) return name;
    let unique = `${name} (${id})`;
    while (taken.has(unique)) unique += ` (${id})`;
    taken.add(unique);
    return unique;
  });
}

/** `$` of `USD`. */
export function symbolOf(currency: string): string {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency, currencyDisplay: 'narrowSymbol' });
  return format.formatToParts(0).find(({ type }) => type === 'currency')?.value ?? currency;
}
