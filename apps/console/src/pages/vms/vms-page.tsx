import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { may } from '../../api/access.js';
import type { Schemas } from '../../api/client.js';
import { availableRegionsQuery } from '../../api/queries.js';
import { useUser } from '../../api/user-context.js';
import { gigabytes, instant } from '../../format/format.js';
import { Chip } from '../../parts/chip.js';
import { Toggle } from '../../parts/fields.js';
import { Paged } from '../../parts/paged.js';
import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';
import { Table, type Column } from '../../parts/table.js';
import { CreateVm } from './create-vm.js';
import { AutoRestart, VmActions } from './vm-actions.js';
import { vmsQuery } from './vm-queries.js';

type Vm = Schemas['Vm'];

export function VmsPage() {
  const { teamId } = useParams({ from: '/in/teams/$teamId' });
  const search = useSearch({ from: '/in/teams/$teamId/vms' });
  const navigate = useNavigate({ from: '/teams/$teamId/vms' });
  const user = useUser();
  const mayUse = may(user, teamId, 'useResources');
  const { page = '1' } = search;
  const vms = useQuery(vmsQuery(teamId, Number(page), search.ended === 'yes'));
  const regions = useQuery(availableRegionsQuery(teamId));
  const regionNames = new Map((regions.data?.data ?? []).map(({ region_id, region_name }) => [region_id, region_name]));
  return (
    <Page
      title="VMs"
      lead="Virtual machines without GPUs, billed while they run."
      actions={mayUse && <CreateVm teamId={teamId} />}
    >
      <Toggle
        label="Show what has ended"
        isOn={search.ended === 'yes'}
        onChange={(isOn) => void navigate({ search: isOn ? { ended: 'yes' } : {}, replace: true })}
      />
      <Paged
        label="VMs"
        query={vms}
        page={page}
        first={1}
        height={280}
        onTurn={(next) => void navigate({ search: { ...search, page: next } })}
      >
        {({ data, pagination }) => (
          <Table
            label="VMs"
            rows={data}
            keyOf={({ instance_id }) => instance_id}
            empty={
              pagination.total === 0 && (
                <Empty title="There is no VM">
                  {mayUse ? 'Create one from a flavour and an image.' : 'Members of the team create them.'}
                </Empty>
              )
            }
            columns={columns({ regionNames, zone: user.timezone, mayUse })}
          />
        )}
      </Paged>
    </Page>
  );
}

interface View {
  regionNames: ReadonlyMap<string, string>;
  zone: string;
  mayUse: boolean;
}

function columns({ regionNames, zone, mayUse }: View): Column<Vm>[] {
  return [
    {
      title: 'VM',
      isHead: true,
      cell: ({ instance_id, team_id, name, image, region_id, volumes, deleted_at }) => (
        <span className="given">
          {deleted_at ? (
            name
          ) : (
            <Link to="/teams/$teamId/vms/$instanceId" params={{ teamId: team_id, instanceId: instance_id }}>
              {name}
            </Link>
          )}
          <br />
          <span className="hint">
            {image}, {regionNames.get(region_id) ?? `region ${region_id}`}
            {volumes.map(({ path }) => `, a volume at ${path}`).join('')}
          </span>
        </span>
      ),
    },
    {
      title: 'State',
      cell: ({ status, reason, restarts, deleted_at }) => (
        <>
          <Chip state={deleted_at ? 'deleted' : status} />
          {reason !== null && <p className="hint given">{reason}</p>}
          {restarts > 0 && <p className="hint">restarted {restarts === 1 ? 'once' : `${restarts} times`}</p>}
        </>
      ),
    },
    {
      title: 'Flavour',
      cell: ({ flavour, vcpus, memory_gb }) => (
        <span className="given">
          {flavour}
          <br />
          <span className="hint">
            {vcpus} vCPUs, {gigabytes(memory_gb)}
          </span>
        </span>
      ),
    },
    { title: 'Restarts by itself', cell: (vm) => <AutoRestart vm={vm} mayUse={mayUse} /> },
    {
      title: 'Started',
      isWhole: true,
      cell: ({ started_at }) => (started_at === null ? '–' : instant(started_at, zone)),
    },
    ...(mayUse ? [{ title: '', cell: (vm: Vm) => <VmActions vm={vm} /> }] : []),
  ];
}
