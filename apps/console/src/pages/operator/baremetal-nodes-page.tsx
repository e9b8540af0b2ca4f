import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { Chip } from '../../parts/chip.js';
import { Act } from '../../parts/dialogs.js';
import { Paged } from '../../parts/paged.js';
import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';
import { Table } from '../../parts/table.js';
import { baremetalNodesQuery } from '../baremetal/baremetal-queries.js';

type Node = Schemas['BaremetalNode'];

export function BaremetalNodesPage() {
  const { page = '1' } = useSearch({ from: '/in/operator/baremetal' });
  const navigate = useNavigate({ from: '/operator/baremetal' });
  const nodes = useQuery(baremetalNodesQuery(Number(page)));
  return (
    <Page
      title="Bare-metal nodes"
      lead="Whole hosts for teams. A failed node stays in maintenance until an operator has checked it."
    >
      <Paged
        label="Bare-metal nodes"
        query={nodes}
        page={page}
        first={1}
        height={240}
        onTurn={(next) => void navigate({ search: { page: next } })}
      >
        {({ data, pagination }) => (
          <Table
            label="Bare-metal nodes"
            rows={data}
            keyOf={({ node_id }) => node_id}
            empty={
              pagination.total === 0 && (
                <Empty title="No host is registered">
                  Register one with POST /api/baremetal/node, its address and a credential.
                </Empty>
              )
            }
            columns={[
              {
                title: 'Node',
                isHead: true,
                cell: ({ name, host, port }) => (
                  <span className="given">
                    {name}
                    <br />
                    <span className="hint">
                      {host}:{port}
                    </span>
                  </span>
                ),
              },
              {
                title: 'State',
                cell: ({ status, reason, maintenance, retired }) => (
                  <>
                    <Chip state={status} /> {maintenance && <Chip state="maintenance" />}{' '}
                    {retired && <Chip state="retired" />}
                    {reason !== null && <p className="hint given">{reason}</p>}
                  </>
                ),
              },
              {
                title: 'Specs',
                cell: ({ specs: { gpu_count, gpu_model, cpu_cores, memory_gb } }) => (
                  <span className="given">
                    {gpu_model === null ? 'no GPUs' : `${gpu_count} × ${gpu_model}`}, {cpu_cores} cores, {memory_gb} GB
                  </span>
                ),
              },
              { title: '', cell: (node) => <NodeActions node={node} /> },
            ]}
          />
        )}
      </Paged>
    </Page>
  );
}

function NodeActions({ node: { node_id, name, maintenance } }: { node: Node }) {
  const params = { params: { path: { node_id } } };
  return (
    <div className="actions">
      <Act
        label="Check"
        action={() => answerOf(api.POST('/api/baremetal/node/{node_id}/check', params))}
        invalidates={['baremetal-nodes']}
        done={`${name} is being checked.`}
      />
      <Act
        label={maintenance ? 'End maintenance' : 'Maintain'}
        action={() =>
          answerOf(api.PUT('/api/baremetal/node/{node_id}', { ...params, body: { maintenance: !maintenance } }))
        }
        invalidates={['baremetal-nodes']}
        done={maintenance ? `${name} takes tenants again.` : `${name} takes no new tenant.`}
      />
    </div>
  );
}
