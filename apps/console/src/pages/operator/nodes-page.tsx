import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { boards } from '@atoll/gpu';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { gpuaasQuery, nodesQuery, poolsQuery, type MetricWindow } from '../../api/queries.js';
import { GpuDrawing, GpuLegend } from '../../gpu/gpu-drawing.js';
import { holdersOf } from '../../gpu/holders.js';
import { shapeOf } from '../../gpu/gpu-shape.js';
import { Button } from '../../parts/button.js';
import { Chip } from '../../parts/chip.js';
import { Chooser, Field } from '../../parts/fields.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { Card, Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';
import { Listing } from '../../parts/listing.js';
import { Paged } from '../../parts/paged.js';
import { WindowChooser } from '../window-chooser.js';
import { NodeActions } from './node-actions.js';

export function NodesPage() {
  const search = useSearch({ from: '/in/operator/nodes' });
  const { page = '1', window = 'last_24h' } = search;
  const navigate = useNavigate({ from: '/operator/nodes' });
  const nodes = useQuery(nodesQuery(Number(page)));
  const services = useQuery(gpuaasQuery);
  const named = services.data?.data ?? [];
  return (
    <Page
      title="Nodes"
      lead="Each GPU as it is now: its slices to scale, who holds them, and what it is switching to."
      actions={named.length > 0 && <RegisterNode services={named} />}
    >
      <Paged
        label="Nodes"
        query={nodes}
        page={page}
        first={1}
        height={420}
        onTurn={(next) => void navigate({ search: { ...search, page: next } })}
      >
        {({ data, pagination }) => (
          <div className="stack">
            <div className="toolbar spread">
              <GpuLegend />
              <WindowChooser
                value={window}
                onChange={(next) => void navigate({ search: { ...search, window: next }, replace: true })}
              />
            </div>
            <Listing
              label="Nodes"
              rows={data}
              keyOf={({ node_id }) => node_id}
              empty={
                pagination.total === 0 && (
                  <Empty title="No node is registered">
                    {named.length === 0
                      ? 'Create a region and a GPU service first.'
                      : 'Register a node with its GPUs, then initialise it.'}
                  </Empty>
                )
              }
            >
              {({ rows }) => rows.map((node) => <NodeCard key={node.node_id} node={node} window={window} />)}
            </Listing>
          </div>
        )}
      </Paged>
    </Page>
  );
}

function NodeCard({ node, window }: { node: Schemas['GpuNode']; window: MetricWindow }) {
  const pools = useQuery(poolsQuery);
  const holders = holdersOf(node.gpus);
  return (
    <Card title={node.node_name} isRow actions={<NodeActions node={node} />}>
      <p>
        <Chip state={node.status} />{' '}
        <Link
          to="/operator/nodes/$nodeId"
          params={{ nodeId: node.node_id }}
          aria-label={`Who holds what on ${node.node_name}`}
        >
          Who holds what
        </Link>
        {node.reason !== null && <span className="hint given"> {node.reason}</span>}
      </p>
      <div className="gpus">
        {node.gpus.map((gpu) => (
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
    </Card>
  );
}

type Board = Schemas['NodeGpus']['board'];

interface NodeTerms {
  gpuaas_id: string;
  node_name: string;
  board: Board;
  count: string;
}

function RegisterNode({ services }: { services: readonly Schemas['Gpuaas'][] }) {
  const initial: NodeTerms = { gpuaas_id: services[0]?.gpuaas_id ?? '', node_name: '', board: 'A100-80GB', count: '8' };
  return (
    <FormDialog
      title="Register a node"
      trigger={<Button kind="primary">Register a node</Button>}
      initial={initial}
      submit="Register"
      action={({ board, count, ...rest }, header) =>
        answerOf(
          api.POST('/api/gpuaas/node', {
            params: { header },
            body: { ...rest, gpus: [{ board, count: Number(count) }] },
          }),
        )
      }
      invalidates={['nodes']}
      done="The node was registered."
    >
      {({ field }) => (
        <>
          <Chooser
            label="GPU service"
            {...field('gpuaas_id')}
            choices={services.map(({ gpuaas_id, name }) => ({ value: gpuaas_id, label: name }))}
          />
          <Field label="Host name" {...field('node_name')} isRequired />
          <Chooser
            label="Board"
            {...field('board')}
            choices={boards.map(({ name: known }) => ({ value: known as Board, label: known }))}
          />
          <Field label="GPUs" type="number" {...field('count', 'gpus.0.count')} isRequired />
        </>
      )}
    </FormDialog>
  );
}
