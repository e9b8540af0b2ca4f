import { groupings, intervals, type Grouping, type Range } from '../../api/bill.js';
import { dayIn } from '../../format/zone.js';
import { Chooser, DateField, Segments } from '../../parts/fields.js';
import { useNow } from '../../parts/now.js';
import type { BillingSearch } from './billing-search.js';
import { presets } from './range.js';

const intervalNames = { hourly: 'Hour', daily: 'Day', weekly: 'Week', monthly: 'Month' };
const groupingNames = { item: 'Item', workspace: 'Workspace', pool: 'GPU pool', storage: 'Storage volume' };

interface BillingFiltersProps {
  range: Range;
  grouping: Grouping;
  zone: string;
  /** Changes the address, and removes the named parameters from it. */
  onChange: (changes: BillingSearch, without?: readonly (keyof BillingSearch)[]) => void;
}

export function BillingFilters({ range, grouping, zone, onChange }: BillingFiltersProps) {
  const today = dayIn(useNow(), range.timezone === 'local' ? zone : 'UTC');
  const known = presets(today);
  const preset = known.find(({ from, to }) => from === range.from && to === range.to)?.value ?? 'custom';
  return (
    <div className="toolbar" role="group" aria-label="Filters">
      <Chooser
        label="Range"
        value={preset}
        choices={[...known, { value: 'custom', label: 'Chosen days' }]}
        onChange={(value) => {
          const chosen = known.find((entry) => entry.value === value);
          if (chosen) onChange({ from: chosen.from, to: chosen.to }, ['interval']);
        }}
      />
      <DateField
        label="First day"
        type="date"
        value={range.from}
        onChange={(from) => onChange({ from, to: range.to < from ? from : range.to })}
      />
      <DateField
        label="Last day"
        type="date"
        value={range.to}
        onChange={(to) => onChange({ from: to < range.from ? to : range.from, to })}
      />
      <Chooser
        label="Bars"
        value={range.interval}
        choices={intervals.map((value) => ({ value, label: intervalNames[value] }))}
        onChange={(interval) => onChange({ interval })}
      />
      <Chooser
        label="Group by"
        value={grouping}
        choices={groupings.map((value) => ({ value, label: groupingNames[value] }))}
        onChange={(by) => onChange({ by })}
      />
      {zone !== 'UTC' && (
        <Segments
          label="Zone"
          value={range.timezone}
          choices={[
            { value: 'local', label: zone },
            { value: 'utc', label: 'UTC' },
          ]}
          onChange={(value) => onChange({ zone: value })}
        />
      )}
    </div>
  );
}
