import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { may } from '../../api/access.js';
import { reportQuery } from '../../api/billing-queries.js';
import type { Schemas } from '../../api/client.js';
import { availableRegionsQuery } from '../../api/queries.js';
import { useUser } from '../../api/user-context.js';
import { gigabytes, instant, money, quantity } from '../../format/format.js';
import { approximate, sum } from '../../format/money.js';
import { dayIn } from '../../format/zone.js';
import { Chip } from '../../parts/chip.js';
import { Held } from '../../parts/held.js';
import { useNow } from '../../parts/now.js';
import { Card, Figure, Page } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { allVolumesQuery } from '../volumes/volume-queries.js';
import { AutoRestart, VmActions } from './vm-actions.js';
import { vmQuery } from './vm-queries.js';

type Vm = Schemas['Vm'];

export function VmPage() {
  const { teamId, instanceId } = useParams({ from: '/in/teams/$teamId/vms/$instanceId' });
  const navigate = useNavigate();
  const user = useUser();
  const mayUse = may(user, teamId, 'useResources');
  const vm = useQuery(vmQuery(teamId, instanceId));
  return (
    <Page
      title={vm.data?.name ?? 'VM'}
      lead={vm.data && <Chip state={vm.data.status} />}
      actions={
        mayUse && (
          <Held of={vm.data}>
            {(data) => (
              <VmActions
                vm={data}
                onDeleted={() => void navigate({ to: '/teams/$teamId/vms', params: { teamId }, search: {} })}
              />
            )}
          </Held>
        )
      }
    >
      <Loaded query={vm} height={320}>
        {(data) => (
          <div className="stack">
            {data.reason !== null && <p className="notice given">{data.reason}</p>}
            <Facts vm={data} zone={user.timezone} mayUse={mayUse} />
            {may(user, teamId, 'readBilling') && <Cost vm={data} zone={user.timezone} />}
            {data.volumes.length > 0 && <Volumes vm={data} />}
            {mayUse && <Access />}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function Facts({ vm, zone, mayUse }: { vm: Vm; zone: string; mayUse: boolean }) {
  const regions = useQuery(availableRegionsQuery(vm.team_id));
  const region =
    regions.data?.data.find(({ region_id }) => region_id === vm.region_id)?.region_name ?? `region ${vm.region_id}`;
  return (
    <Card title="What runs">
      <dl className="figures">
        <Figure
          name="Flavour"
          isText
          value={<span className="given">{vm.flavour}</span>}
          hint={`${vm.vcpus} vCPUs, ${gigabytes(vm.memory_gb)}`}
        />
        <Figure name="Image" isText value={<code className="given">{vm.image}</code>} />
        <Figure name="Region" isText value={<span className="given">{region}</span>} />
        <Figure name="Started" isText value={vm.started_at === null ? '–' : instant(vm.started_at, zone)} />
        <Figure name="Created" isText value={instant(vm.created_at, zone)} />
        <Figure
          name="Restarts by itself"
          value={<AutoRestart vm={vm} mayUse={mayUse} />}
          hint={vm.restarts === 0 ? 'not once since it was started' : `${quantity(vm.restarts)} since it was started`}
        />
      </dl>
      <p className="hint">
        VM <code className="given">{vm.instance_id}</code>. Times are of {zone}.
      </p>
    </Card>
  );
}

/** What VMs of its flavour cost this month: a bill names flavours, and no single VM. */
function Cost({ vm: { team_id, flavour }, zone }: { vm: Vm; zone: string }) {
  const today = dayIn(useNow(), zone);
  const month = useQuery(
    reportQuery(team_id, { from: `${today.slice(0, 7)}-01`, to: today, interval: 'monthly', timezone: 'local' }),
  );
  const sku = `vm.${flavour}`;
  return (
    <Card
      title="Cost"
      actions={
        <Link to="/teams/$teamId/billing" params={{ teamId: team_id }} className="button" data-small="true">
          Open the bill
        </Link>
      }
    >
      <Loaded query={month} height={70}>
        {({ currency, intervals, unpriced }) => {
          const items = intervals.flatMap((bucket) => bucket.items).filter((item) => item.sku === sku);
          const hours = items.reduce((all, { unit_hours }) => all + unit_hours, 0);
          const cost = sum(items.map((item) => item.cost));
          if (unpriced.some((usage) => usage.sku === sku))
            return <p className="hint">The flavour {flavour} has no price for all of its time.</p>;
          return (
            <dl className="figures">
              <Figure
                name={`All VMs of ${flavour}, this month so far`}
                value={money(cost, currency)}
                hint={`${quantity(hours)} hours in the time of ${zone}`}
              />
              {hours > 0 && (
                <Figure
                  name="An hour, on average"
                  value={money((approximate(cost) / hours).toFixed(6), currency, 4)}
                  hint="while it runs"
                />
              )}
            </dl>
          );
        }}
      </Loaded>
    </Card>
  );
}

function Volumes({ vm: { team_id, volumes: mounts } }: { vm: Vm }) {
  const volumes = useQuery(allVolumesQuery(team_id));
  const found = new Map((volumes.data?.data ?? []).map((volume) => [volume.volume_id, volume]));
  return (
    <Card title="Shared volumes">
      <Table
        label="Shared volumes"
        rows={mounts}
        keyOf={({ volume_id }) => volume_id}
        columns={[
          {
            title: 'Volume',
            isHead: true,
            cell: ({ volume_id }) => (
              <Link to="/teams/$teamId/volumes" params={{ teamId: team_id }} className="given">
                {found.get(volume_id)?.name ?? `volume ${volume_id}`}
              </Link>
            ),
          },
          { title: 'Mounted at', cell: ({ path }) => <code className="given">{path}</code> },
          {
            title: 'Size',
            isNumber: true,
            cell: ({ volume_id }) => {
              const volume = found.get(volume_id);
              return volume ? gigabytes(volume.size_in_gb) : '–';
            },
          },
        ]}
      />
    </Card>
  );
}

/** The API has no address of a VM: VMs run only in simulated clusters. */
function Access() {
  return (
    <Card title="Who gets in">
      <p className="hint">
        Members who may use the VMs of this team, with their <Link to="/profile/ssh-keys">SSH keys</Link>. A change of a
        key or a member holds at once. VMs run in simulated clusters for now, which give them no address.
      </p>
    </Card>
  );
}
