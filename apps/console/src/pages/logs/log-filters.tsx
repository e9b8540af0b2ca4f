import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Form } from 'react-aria-components/Form';
import { instantAt, wallTime } from '../../format/zone.js';
import { Button } from '../../parts/button.js';
import { Chooser, DateField, Field, Toggle } from '../../parts/fields.js';
import { podNamesQuery } from '../pods/pod-queries.js';
import {
  isBackwards,
  mostSearched,
  ranges,
  startOfRange,
  validateLogs,
  type LogRange,
  type LogSearch,
} from './log-search.js';

const rangeNames: Record<LogRange, string> = {
  '15m': 'Last 15 minutes',
  '1h': 'Last hour',
  '6h': 'Last 6 hours',
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
};
const rangeChoices = [
  { value: 'all', label: 'All that is kept' },
  ...ranges.map((value) => ({ value, label: rangeNames[value] })),
  { value: 'chosen', label: 'Chosen times' },
];

interface LogFiltersProps {
  teamId: string;
  search: LogSearch;
  zone: string;
  isLive: boolean;
  /** Replaces the state of the page. */
  onChange: (search: LogSearch) => void;
}

export function LogFilters({ teamId, search, zone, isLive, onChange }: LogFiltersProps) {
  const { pod, q = '', range, since, until } = search;
  const isChosen = since !== undefined || until !== undefined;
  // The selected line may not be among what is read then.
  const change = (changes: Partial<Record<keyof LogSearch, string | undefined>>) =>
    onChange(validateLogs({ ...search, at: undefined, ...changes }));
  const chooseRange = (value: string) =>
    change({ range: value, until: undefined, since: value === 'chosen' ? startOfRange(range ?? '1h') : undefined });
  return (
    <div className="toolbar" role="group" aria-label="Filters">
      <PodChooser teamId={teamId} pod={pod} onChange={(chosen) => change({ pod: chosen })} />
      <Chooser
        label="Range"
        value={isChosen ? 'chosen' : (range ?? 'all')}
        choices={rangeChoices}
        onChange={chooseRange}
      />
      {isChosen && (
        <>
          <Moment label={`From (${zone})`} value={since} zone={zone} onChange={(from) => change({ since: from })} />
          <Moment
            label={`To (${zone})`}
            value={until}
            zone={zone}
            error={isBackwards(search) ? 'Enter a time after the one in From.' : undefined}
            onChange={(to) => change({ until: to })}
          />
        </>
      )}
      <SearchBox key={q} text={q} onSearch={(text) => change({ q: text })} />
      <Toggle
        label="Follow"
        isOn={isLive}
        isDisabled={until !== undefined}
        onChange={(isOn) => change({ live: isOn ? undefined : 'off' })}
      />
    </div>
  );
}

function PodChooser({
  teamId,
  pod,
  onChange,
}: {
  teamId: string;
  pod: string | undefined;
  onChange: (pod: string | undefined) => void;
}) {
  const pods = useQuery(podNamesQuery(teamId));
  const names = new Map<string, string>((pods.data ?? []).map(({ pod_name, status }) => [pod_name, status]));
  // A pod that was deleted still has a log.
  if (pod !== undefined && !names.has(pod)) names.set(pod, '');
  return (
    <Chooser
      label="Pod"
      value={pod ?? ''}
      choices={[
        { value: '', label: 'Every pod' },
        ...[...names].map(([value, detail]) => ({ value, label: value, detail })),
      ]}
      onChange={(value) => onChange(value || undefined)}
    />
  );
}

interface MomentProps {
  label: string;
  value: string | undefined;
  zone: string;
  error?: string | undefined;
  onChange: (instant: string | undefined) => void;
}

/** An instant, as the clocks of the zone show it. */
function Moment({ label, value, zone, error, onChange }: MomentProps) {
  return (
    <DateField
      label={label}
      type="datetime-local"
      value={value === undefined ? '' : wallTime(value, zone)}
      error={error}
      isOptional
      onChange={(wall) => onChange(instantAt(wall, zone))}
    />
  );
}

function SearchBox({ text, onSearch }: { text: string; onSearch: (text: string) => void }) {
  const [typed, setTyped] = useState(text);
  const isTooLong = typed.length > mostSearched;
  return (
    <Form
      className="toolbar"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isTooLong) onSearch(typed);
      }}
    >
      <Field
        label="Lines that contain"
        value={typed}
        onChange={setTyped}
        error={isTooLong ? `Enter at most ${mostSearched} characters; these are ${typed.length}.` : undefined}
      />
      <Button type="submit">Search</Button>
    </Form>
  );
}
