import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.js';
import { useUser } from '../../api/user-context.js';
import { instant } from '../../format/format.js';
import { Chip } from '../../parts/chip.js';
import { Segments } from '../../parts/fields.js';
import { Paged } from '../../parts/paged.js';
import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';
import { Table, type Column } from '../../parts/table.js';
import { machineName } from './machine-names.js';
import { processesQuery, type Machine } from './operation-queries.js';

type Process = Schemas['MachineProcess'];

const kinds = [
  { value: 'failed', label: 'Failed' },
  { value: 'waiting', label: 'Waiting' },
] as const satisfies { value: Machine['kind']; label: string }[];

export function ProcessesPage() {
  const { service, machine } = useParams({ from: '/in/operator/machines/$service/$machine' });
  const search = useSearch({ from: '/in/operator/machines/$service/$machine' });
  const navigate = useNavigate({ from: '/operator/machines/$service/$machine' });
  const { timezone } = useUser();
  const { kind = 'failed', state, page = '1' } = search;
  const path = { service: service as Machine['service'], machine };
  const processes = useQuery(processesQuery(path, { kind, page: Number(page), ...(state !== undefined && { state }) }));
  return (
    <Page
      title={machineName(machine)}
      lead={
        <>
          {state === undefined ? 'All states' : `In the state ${state.replaceAll('_', ' ')}`}, longest first. Times are
          in {timezone}.
        </>
      }
      actions={
        <Link className="button" data-small="true" to="/operator/machines">
          All that waits or failed
        </Link>
      }
    >
      <Segments
        label="Kind"
        value={kind}
        choices={kinds}
        onChange={(next) => void navigate({ search: next === 'waiting' ? { kind: next } : {}, replace: true })}
      />
      <Paged
        label="Processes"
        query={processes}
        page={page}
        first={1}
        height={320}
        onTurn={(next) => void navigate({ search: { ...search, page: next } })}
      >
        {({ data, pagination }) => (
          <Table
            label="Processes"
            rows={data}
            keyOf={({ key }) => key}
            empty={
              pagination.total === 0 && (
                <Empty title={kind === 'failed' ? 'Nothing of it has failed' : 'Nothing of it waits'} />
              )
            }
            columns={columns(machine, timezone)}
          />
        )}
      </Paged>
    </Page>
  );
}

function columns(machine: string, zone: string): Column<Process>[] {
  const at = (text: string | null) => (text === null ? '–' : instant(text, zone));
  return [
    {
      title: 'Id',
      isHead: true,
      cell: ({ key }) =>
        machine === 'node' ? (
          <Link to="/operator/nodes/$nodeId" params={{ nodeId: key }}>
            {key}
          </Link>
        ) : (
          <code className="given">{key}</code>
        ),
    },
    { title: 'State', cell: ({ state, kind }) => <Chip state={state} as={kind === 'failed' ? 'failed' : 'pending'} /> },
    {
      title: 'Why',
      cell: ({ error, lane, request_id }) => (
        <span className="given wide">
          {error?.message ?? <span className="hint">No error</span>}
          {lane !== '' && (
            <>
              <br />
              <span className="hint">depends on {lane}</span>
            </>
          )}
          {request_id !== null && (
            <>
              <br />
              <span className="hint">
                request <code>{request_id}</code>
              </span>
            </>
          )}
        </span>
      ),
    },
    { title: 'Since', isWhole: true, cell: ({ entered_at }) => at(entered_at) },
    { title: 'Tries', isNumber: true, cell: ({ attempts }) => attempts },
    { title: 'Next try', isWhole: true, cell: ({ next_try_at }) => at(next_try_at) },
    { title: 'Given up at', isWhole: true, cell: ({ deadline_at }) => at(deadline_at) },
  ];
}
