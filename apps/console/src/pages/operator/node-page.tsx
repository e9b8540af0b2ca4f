import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { nodeQuery, poolsQuery } from '../../api/queries.js';
import type { Schemas } from '../../api/client.js';
import { seriesColour } from '../../charts/bar-chart.js';
import { gigabytes } from '../../format/format.js';
import { GpuDrawing, GpuLegend } from '../../gpu/gpu-drawing.js';
import { holdersOf } from '../../gpu/holders.js';
import { shapeOf } from '../../gpu/gpu-shape.js';
import { Chip } from '../../parts/chip.js';
import { Held } from '../../parts/held.js';
import { Card, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { WindowChooser } from '../window-chooser.js';
import { NodeActions } from './node-actions.js';

export function NodePage() {
  const { nodeId } = useParams({ from: '/in/operator/nodes/$nodeId' });
  const { window = 'last_24h' } = useSearch({ from: '/in/operator/nodes/$nodeId' });
  const navigate = useNavigate({ from: '/operator/nodes/$nodeId' });
  const node = useQuery(nodeQuery(nodeId));
  const pools = useQuery(poolsQuery);
  return (
    <Page
      title={node.data?.node_name ?? `Node ${nodeId}`}
      lead={node.data && <Chip state={node.data.status} />}
      actions={<Held of={node.data}>{(data) => <NodeActions node={data} />}</Held>}
    >
      <Loaded query={node} height={420}>
        {(data) => {
          const holders = holdersOf(data.gpus);
          return (
            <div className="stack">
              {data.reason !== null && <p className="notice given">{data.reason}</p>}
              <div className="toolbar spread">
                <GpuLegend />
                <WindowChooser
                  value={window}
                  onChange={(next) => void navigate({ search: { window: next }, replace: true })}
                />
              </div>
              <div className="gpus">
                {data.gpus.map((gpu) => (
                  <GpuDrawing
                    key={gpu.gpu_id}
                    gpu={shapeOf(
                      gpu,
                      pools.data?.data.find(({ pool_id }) => pool_id === gpu.pool_id),
                    )}
                    window={window}
                    {...holders}
                  />
                ))}
              </div>
              <HeldParts gpus={data.gpus} colourOf={holders.colourOf} />
            </div>
          );
        }}
      </Loaded>
    </Page>
  );
}

interface HeldRow {
  gpu: string;
  place: string;
  profile: string;
  memory: string;
  subscription: string;
  workload: string | null;
  state: string;
}

function rowsOf(gpus: readonly Schemas['Gpu'][]): HeldRow[] {
  return gpus.flatMap(({ gpu_id, slices, tenants }) => [
    ...slices.map((slice) => ({
      gpu: gpu_id,
      place: slice.size === 1 ? String(slice.start) : `${slice.start} to ${slice.start + slice.size - 1}`,
      profile: slice.profile,
      memory: gigabytes(slice.v_ram_gb),
      subscription: slice.subscription_id,
      workload: slice.workload_id,
      state: slice.state,
    })),
    ...tenants.map((tenant, at) => ({
      gpu: gpu_id,
      place: `turn ${at}`,
      profile: 'whole GPU, in turns',
      memory: '–',
      subscription: tenant.subscription_id,
      workload: tenant.workload_id,
      state: tenant.workload_id === null ? 'leased' : 'occupied',
    })),
  ]);
}

function HeldParts({
  gpus,
  colourOf,
}: {
  gpus: readonly Schemas['Gpu'][];
  colourOf: (holder: string) => number | null;
}) {
  const rows = rowsOf(gpus);
  return (
    <Card title="Who holds what">
      <Table
        label="Who holds what"
        rows={rows}
        keyOf={({ gpu, place }) => `${gpu} ${place}`}
        empty={<Empty title="Nothing is held on this node" />}
        columns={[
          { title: 'GPU', isHead: true, cell: ({ gpu }) => gpu },
          { title: 'Slots', cell: ({ place }) => place },
          { title: 'Profile', cell: ({ profile }) => profile },
          { title: 'Memory', isNumber: true, cell: ({ memory }) => memory },
          {
            title: 'Subscription',
            cell: ({ subscription }) => (
              <>
                <span className="swatch inline" style={{ background: seriesColour(colourOf(subscription) ?? 0) }} /> #
                {subscription}
              </>
            ),
          },
          { title: 'Workload', cell: ({ workload }) => (workload === null ? '–' : `#${workload}`) },
          { title: 'State', cell: ({ state }) => state },
        ]}
      />
    </Card>
  );
}
