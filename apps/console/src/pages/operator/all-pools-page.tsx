import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { boardNamed } from '@atoll/gpu';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import { gpuaasQuery, nodesQuery, poolsQuery } from '../../api/queries.js';
import { Button } from '../../parts/button.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field, Toggle } from '../../parts/fields.js';
import { Card, Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Table } from '../../parts/table.js';

export function AllPoolsPage() {
  const pools = useQuery(poolsQuery);
  const services = useQuery(gpuaasQuery);
  const serviceName = (id: string) => services.data?.data.find(({ gpuaas_id }) => gpuaas_id === id)?.name ?? id;
  return (
    <Page
      title="Pools"
      lead="GPUs of one board that are shared in one way, and what is sold of them."
      actions={
        <ModalBox title="Create a pool" trigger={<Button kind="primary">Create a pool</Button>}>
          {(close) => <CreatePool close={close} />}
        </ModalBox>
      }
    >
      <Card title="All pools">
        <Loaded query={pools}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty title="There is no pool yet">A pool takes GPUs of a node that is ready.</Empty>
            ) : (
              <Table
                label="All pools"
                rows={data}
                keyOf={({ pool_id }) => pool_id}
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
                  { title: 'Sharing', cell: ({ sharing_mode, mechanism }) => `${sharing_mode}, ${mechanism.replace('_', ' ')}` },
                  { title: 'Sells', cell: ({ profiles }) => <span className="given">{profiles.join(', ')}</span> },
                  { title: 'Overcommit', isNumber: true, cell: ({ overcommit }) => `${overcommit} ×` },
                  { title: 'Fallback', cell: ({ allow_fallback }) => (allow_fallback ? 'to Temporal' : 'no') },
                ]}
              />
            )
          }
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

function CreatePool({ close }: { close: () => void }) {
  const nodes = useQuery(nodesQuery(1));
  return (
    <Loaded query={nodes} height={200}>
      {({ data }) => {
        const ready = data.filter(({ gpus, status }) => status === 'ready' && gpus.some(({ pool_id }) => pool_id === null));
        if (ready.length === 0) return <Empty title="No GPU is free for a pool">Register and initialise a node first.</Empty>;
        return <PoolForm nodes={ready} close={close} />;
      }}
    </Loaded>
  );
}

function PoolForm({ nodes, close }: { nodes: readonly Schemas['GpuNode'][]; close: () => void }) {
  const [header] = useState(idempotencyKey);
  const [nodeId, setNode] = useState(nodes[0]?.node_id ?? '');
  const [name, setName] = useState('');
  const [mechanism, setMechanism] = useState<Mechanism>('mig');
  const [replicas, setReplicas] = useState('4');
  const [profiles, setProfiles] = useState('');
  const [overcommit, setOvercommit] = useState('1');
  const [fallback, setFallback] = useState(false);
  const node = nodes.find(({ node_id }) => node_id === nodeId);
  const gpus = node?.gpus.filter(({ pool_id }) => pool_id === null) ?? [];
  const board = gpus[0]?.board ?? '';
  const offered = boardNamed(board)?.migProfiles.map((profile) => profile.name) ?? [];
  const chosen = profiles.split(/[\s,]+/).filter(Boolean);
  const create = () =>
    answerOf(
      api.POST('/api/gpuaas/pool/create', {
        params: { header },
        body: {
          gpuaas_id: node?.gpuaas_id ?? '',
          pool_name: name,
          gpu_ids: gpus.filter((gpu) => gpu.board === board).map(({ gpu_id }) => gpu_id),
          sharing_mode: mechanism === 'time_slicing' ? 'Temporal' : 'Spatial',
          mechanism,
          ...(mechanism === 'mig' ? { profiles: chosen.length > 0 ? chosen : offered } : { replicas: Number(replicas) }),
          overcommit: Number(overcommit),
          allow_fallback: fallback && mechanism !== 'time_slicing',
        },
      }),
    );
  return (
    <ActionForm
      submit="Create"
      action={create}
      invalidates={['pools', 'nodes']}
      done="The pool was created."
      onDone={close}
      onCancel={close}
    >
      {(problem) => (
        <>
          <Chooser
            label="GPUs of"
            value={nodeId}
            choices={nodes.map(({ node_id, node_name }) => ({ value: node_id, label: node_name }))}
            onChange={setNode}
          />
          <p className="hint">
            All {gpus.filter((gpu) => gpu.board === board).length} free GPUs of board {board}.
          </p>
          <Field label="Name" value={name} onChange={setName} error={problem?.fields.pool_name} isRequired />
          <Chooser label="Sharing" value={mechanism} choices={mechanisms} onChange={setMechanism} />
          {mechanism === 'mig' ? (
            <Field
              label="Profiles"
              value={profiles}
              onChange={setProfiles}
              hint={`Of ${offered.join(', ') || 'a board without MIG'}; all of them unless given.`}
              error={problem?.fields.profiles}
            />
          ) : (
            <Field label="Parts of each GPU" type="number" value={replicas} onChange={setReplicas} error={problem?.fields.replicas} />
          )}
          <Field
            label="Overcommit"
            type="number"
            value={overcommit}
            onChange={setOvercommit}
            hint="How often each slice is sold."
            error={problem?.fields.overcommit}
          />
          {mechanism !== 'time_slicing' && <Toggle label="GPUs may fall back to Temporal" isOn={fallback} onChange={setFallback} />}
        </>
      )}
    </ActionForm>
  );
}
