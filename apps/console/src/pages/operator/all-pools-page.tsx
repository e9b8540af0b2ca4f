import { useQuery } from '@tanstack/react-query';
import { boardNamed } from '@atoll/gpu';
import { answerOf, api, type IdempotencyHeader, type Schemas } from '../../api/client.js';
import { allNodesQuery, gpuaasQuery, poolsQuery } from '../../api/queries.js';
import { Button } from '../../parts/button.js';
import { DialogEmpty, DialogLoaded, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field, Toggle } from '../../parts/fields.js';
import { DialogForm } from '../../parts/form-dialog.js';
import { Card, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';

export function AllPoolsPage() {
  const pools = useQuery(poolsQuery);
  const services = useQuery(gpuaasQuery);
  const serviceNames = new Map(services.data?.data.map(({ gpuaas_id, name }) => [gpuaas_id, name]));
  const serviceName = (id: string) => serviceNames.get(id) ?? id;
  return (
    <Page
      title="Pools"
      lead="GPUs of one board, shared in the same way, and the slices they sell."
      actions={
        <ModalBox title="Create a pool" trigger={<Button kind="primary">Create a pool</Button>}>
          <CreatePool />
        </ModalBox>
      }
    >
      <Card title="All pools">
        <Loaded query={pools}>
          {({ data }) => (
            <Table
              label="Pools"
              isInAddress
              rows={data}
              keyOf={({ pool_id }) => pool_id}
              findBy={({ pool_name, gpuaas_id, board, mechanism, profiles }) => [
                ...[pool_name, serviceName(gpuaas_id), board, mechanism.replace('_', ' ')],
                ...profiles,
              ]}
              empty={<Empty title="There is no pool yet">A pool takes GPUs of a node that is ready.</Empty>}
              columns={[
                {
                  title: 'Pool',
                  isHead: true,
                  cell: ({ pool_name, gpuaas_id }) => (
                    <span className="given">
                      {pool_name}
                      <br />
                      <span className="hint">{serviceName(gpuaas_id)}</span>
                    </span>
                  ),
                },
                { title: 'Board', cell: ({ board, gpu_ids }) => `${gpu_ids.length} × ${board}` },
                {
                  title: 'Sharing',
                  cell: ({ sharing_mode, mechanism }) => `${sharing_mode}, ${mechanism.replace('_', ' ')}`,
                },
                { title: 'Sells', cell: ({ profiles }) => <span className="given">{profiles.join(', ')}</span> },
                { title: 'Overcommit', isNumber: true, cell: ({ overcommit }) => `${overcommit} ×` },
                { title: 'Fallback', cell: ({ allow_fallback }) => (allow_fallback ? 'to Temporal' : 'no') },
              ]}
            />
          )}
        </Loaded>
      </Card>
    </Page>
  );
}

const mechanisms = [
  { value: 'mig', label: 'MIG: cut in hardware (Spatial)' },
  { value: 'mps', label: 'MPS: cut in software (Spatial)' },
  { value: 'time_slicing', label: 'Time slicing: lent in turns (Temporal)' },
] as const;

type Mechanism = (typeof mechanisms)[number]['value'];

function CreatePool() {
  const nodes = useQuery(allNodesQuery);
  return (
    <DialogLoaded
      query={nodes}
      height={200}
      choices={({ data }) =>
        data.filter(({ gpus, status }) => status === 'ready' && gpus.some(({ pool_id }) => pool_id === null))
      }
      none={<DialogEmpty title="No GPU is free for a pool">Register and initialise a node first.</DialogEmpty>}
    >
      {(ready) => <PoolForm nodes={ready} />}
    </DialogLoaded>
  );
}

/** What a new pool takes: the free GPUs of a node that are of one board. */
function freeOf(nodes: readonly Schemas['GpuNode'][], nodeId: string) {
  const node = nodes.find(({ node_id }) => node_id === nodeId);
  const free = node?.gpus.filter(({ pool_id }) => pool_id === null) ?? [];
  const board = free[0]?.board ?? '';
  return {
    board,
    gpuaasId: node?.gpuaas_id ?? '',
    gpuIds: free.filter((gpu) => gpu.board === board).map(({ gpu_id }) => gpu_id),
    profiles: boardNamed(board)?.migProfiles.map(({ name }) => name) ?? [],
  };
}

function PoolForm({ nodes }: { nodes: readonly Schemas['GpuNode'][] }) {
  const initial = {
    ...{ nodeId: nodes[0]?.node_id ?? '', name: '', mechanism: 'mig' as Mechanism },
    ...{ replicas: '4', profiles: '', overcommit: '1', fallback: false },
  };
  const create = (
    { nodeId, name, mechanism, replicas, profiles, overcommit, fallback }: typeof initial,
    header: IdempotencyHeader,
  ) => {
    const free = freeOf(nodes, nodeId);
    const chosen = profiles.split(/[\s,]+/).filter(Boolean);
    const body = {
      ...{ gpuaas_id: free.gpuaasId, pool_name: name, gpu_ids: free.gpuIds, mechanism },
      sharing_mode: mechanism === 'time_slicing' ? ('Temporal' as const) : ('Spatial' as const),
      ...(mechanism === 'mig'
        ? { profiles: chosen.length > 0 ? chosen : free.profiles }
        : { replicas: Number(replicas) }),
      overcommit: Number(overcommit),
      allow_fallback: fallback && mechanism !== 'time_slicing',
    };
    return answerOf(api.POST('/api/gpuaas/pool/create', { params: { header }, body }));
  };
  return (
    <DialogForm
      initial={initial}
      keptAs="new pool"
      submit="Create"
      action={create}
      invalidates={['pools', 'nodes', 'available-pools', 'available-regions']}
      done="The pool was created."
    >
      {({ values: { nodeId, mechanism, fallback: mayFallBack }, field }) => {
        const { board, gpuIds, profiles } = freeOf(nodes, nodeId);
        return (
          <>
            <Chooser
              label="GPUs of"
              {...field('nodeId', 'gpu_ids')}
              choices={nodes.map(({ node_id, node_name }) => ({ value: node_id, label: node_name }))}
            />
            <p className="hint">
              All {gpuIds.length} free GPUs of board {board}.
            </p>
            <Field label="Name" {...field('name', 'pool_name')} isRequired />
            <Chooser label="Sharing" {...field('mechanism')} choices={mechanisms} />
            {mechanism === 'mig' ? (
              <Field
                label="Profiles"
                {...field('profiles')}
                hint={`Of ${profiles.join(', ') || 'a board without MIG'}; all of them unless given.`}
              />
            ) : (
              <Field label="Parts of each GPU" type="number" {...field('replicas')} />
            )}
            <Field label="Overcommit" type="number" {...field('overcommit')} hint="How often each slice is sold." />
            {mechanism !== 'time_slicing' && (
              <Toggle
                label="GPUs may fall back to Temporal"
                isOn={mayFallBack}
                {...field('fallback', 'allow_fallback')}
              />
            )}
          </>
        );
      }}
    </DialogForm>
  );
}
