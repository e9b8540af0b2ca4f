import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useUser } from '../../api/user-context.js';
import { instant, quantity } from '../../format/format.js';
import { Chip } from '../../parts/chip.js';
import { Card, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table, type Column } from '../../parts/table.js';
import { machineName } from './machine-names.js';
import { machinesQuery, type Machine } from './operation-queries.js';
import { SilentServices } from './silent-services.js';

export function MachinesPage() {
  const machines = useQuery(machinesQuery);
  const { timezone } = useUser();
  return (
    <Page
      title="What waits or failed"
      lead={`Everything under way in all services, by the time it has been in its state. Times are in ${timezone}.`}
    >
      <Loaded query={machines} height={420}>
        {({ data, services }) => (
          <div className="stack">
            <SilentServices services={services} />
            <States
              title="Failed"
              rows={data.filter(({ kind }) => kind === 'failed')}
              zone={timezone}
              empty={<Empty title="Nothing has failed">What fails and has ended is kept here for a week.</Empty>}
            />
            <States
              title="Waiting"
              rows={data.filter(({ kind }) => kind === 'waiting')}
              zone={timezone}
              empty={<Empty title="Nothing waits">There is no pending work.</Empty>}
            />
          </div>
        )}
      </Loaded>
    </Page>
  );
}

interface StatesProps {
  title: string;
  rows: readonly Machine[];
  zone: string;
  empty: React.ReactNode;
}

function States({ title, rows, zone, empty }: StatesProps) {
  return (
    <Card title={title}>
      <Table
        label={title}
        rows={rows}
        keyOf={({ service, machine, state }) => `${service} ${machine} ${state}`}
        empty={empty}
        columns={columns(zone)}
      />
    </Card>
  );
}

function columns(zone: string): Column<Machine>[] {
  const age = (title: string, of: keyof Machine['ages']): Column<Machine> => ({
    title,
    isNumber: true,
    cell: ({ ages }) => (ages[of] === 0 ? <span className="hint">0</span> : quantity(ages[of])),
  });
  return [
    {
      title: 'Process',
      isHead: true,
      cell: ({ service, machine, state, kind }) => (
        <Link
          to="/operator/machines/$service/$machine"
          params={{ service, machine }}
          search={{ state, ...(kind === 'waiting' && { kind }) }}
        >
          {machineName(machine)}
        </Link>
      ),
    },
    { title: 'State', cell: ({ state, kind }) => <Chip state={state} as={kind === 'failed' ? 'failed' : 'pending'} /> },
    {
      title: 'Count',
      isNumber: true,
      cell: ({ count, has_more }) => <strong>{`${quantity(count)}${has_more ? '+' : ''}`}</strong>,
    },
    age('< 1 min', 'under_minute'),
    age('< 1 h', 'under_hour'),
    age('< 1 day', 'under_day'),
    age('Older', 'older'),
    { title: 'Oldest since', isWhole: true, cell: ({ oldest_entered_at }) => instant(oldest_entered_at, zone) },
    {
      title: 'Overdue',
      isNumber: true,
      cell: ({ overdue }) =>
        overdue === 0 ? <span className="hint">0</span> : <strong className="bad">{quantity(overdue)}</strong>,
    },
    {
      title: 'Retrying',
      isNumber: true,
      cell: ({ retrying }) => (retrying === 0 ? <span className="hint">0</span> : quantity(retrying)),
    },
  ];
}
