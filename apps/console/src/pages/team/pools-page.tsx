import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { availablePoolsQuery, availableRegionsQuery, poolGpusQuery, type MetricWindow } from '../../api/queries.js';
import type { Schemas } from '../../api/client.js';
import { decimal, gigabytes, quantity, unitPrice } from '../../format/format.js';
import { GpuDrawing, GpuLegend } from '../../gpu/gpu-drawing.js';
import { shapeOf } from '../../gpu/gpu-shape.js';
import { holdersOf } from '../../gpu/holders.js';
import { Listing } from '../../parts/listing.js';
import { Card, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { may } from '../../api/access.js';
import { useUser } from '../../api/user-context.js';
import { WindowChooser } from '../window-chooser.js';
import { SubscribeDialog } from './subscribe-dialog.js';

const isolations = {
  hardware: 'Hardware: own memory and compute (MIG)',
  software: 'Software: own memory limit (MPS)',
  none: 'None: the GPU is lent in turns',
};

export function PoolsPage() {
  const { teamId } = useParams({ from: '/in/teams/$teamId' });
  const search = useSearch({ from: '/in/teams/$teamId/pools' });
  const { window = 'last_24h' } = search;
  const navigate = useNavigate({ from: '/teams/$teamId/pools' });
  const user = useUser();
  const pools = useQuery(availablePoolsQuery(teamId));
  const regions = useQuery(availableRegionsQuery(teamId));
  const regionNames = new Map(regions.data?.data.map(({ region_id, region_name }) => [region_id, region_name]));
  const regionName = (id: string) => regionNames.get(id) ?? `region ${id}`;
  return (
    <Page title="GPU pools" lead="Free capacity by pool and slice. A slice is yours once the subscription is active.">
      <Loaded query={pools} height={320}>
        {({ data }) => (
          <>
            <div className="toolbar spread">
              <GpuLegend hasOthers />
              <WindowChooser
                value={window}
                onChange={(next) => void navigate({ search: { ...search, window: next }, replace: true })}
              />
            </div>
            <Listing
              label="GPU pools"
              isInAddress
              rows={data}
              keyOf={({ pool_id }) => pool_id}
              empty={<Empty title="No pool is offered">The operator has made no GPU pool yet.</Empty>}
              findBy={({ pool_name, board, region_id }) => [pool_name, board, regionName(region_id)]}
              isReadByRow
            >
              {({ rows }) =>
                rows.map((pool) => (
                  <PoolCard
                    key={pool.pool_id}
                    pool={pool}
                    region={regionName(pool.region_id)}
                    teamId={teamId}
                    window={window}
                    maySubscribe={may(user, teamId, 'useResources')}
                  />
                ))
              }
            </Listing>
          </>
        )}
      </Loaded>
    </Page>
  );
}

interface PoolCardProps {
  pool: Schemas['AvailablePool'];
  region: string;
  teamId: string;
  window: MetricWindow;
  maySubscribe: boolean;
}

function PoolCard({ pool, region, teamId, window, maySubscribe }: PoolCardProps) {
  return (
    <Card title={pool.pool_name} isRow actions={maySubscribe && <SubscribeDialog pool={pool} teamId={teamId} />}>
      <p className="hint">
        {pool.board} in {region} · {pool.sharing_mode} · {isolations[pool.isolation]}
      </p>
      <PoolGpus poolId={pool.pool_id} teamId={teamId} window={window} />
      <Table
        label={`What ${pool.pool_name} sells`}
        rows={pool.profiles}
        keyOf={({ profile }) => profile}
        columns={[
          { title: 'Profile', isHead: true, cell: ({ profile }) => <code>{profile}</code> },
          { title: 'Memory', isNumber: true, cell: ({ v_ram_gb }) => gigabytes(v_ram_gb) },
          {
            title: 'Free now',
            isNumber: true,
            cell: ({ available_vgpus }) =>
              available_vgpus === 0 ? <span className="quiet">none</span> : quantity(available_vgpus),
          },
          {
            title: 'Price an hour',
            isNumber: true,
            cell: ({ unit_price, currency }) => {
              if (unit_price === null) return <span className="quiet">no price</span>;
              return currency ? unitPrice(unit_price, currency) : decimal(unit_price);
            },
          },
        ]}
      />
    </Card>
  );
}

/** The pool's GPUs as they are: the team's own slices in colour, those of others in grey. */
function PoolGpus({ poolId, teamId, window }: { poolId: string; teamId: string; window: MetricWindow }) {
  const gpus = useQuery(poolGpusQuery(teamId, poolId));
  return (
    <Loaded query={gpus} height={150}>
      {({ data, pagination }) => {
        const holders = holdersOf(data);
        return (
          <>
            <div className="gpus">
              {data.map((gpu) => (
                <GpuDrawing key={gpu.gpu_id} gpu={shapeOf(gpu)} window={window} {...holders} />
              ))}
            </div>
            {pagination.total > data.length && (
              <p className="hint">
                The first {data.length} of {pagination.total} GPUs.
              </p>
            )}
          </>
        );
      }}
    </Loaded>
  );
}
