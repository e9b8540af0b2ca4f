import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import { availableRegionsQuery } from '../../api/queries.js';
import { gigabytes } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { ActionForm, Ask, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field } from '../../parts/fields.js';
import { Empty, Loaded } from '../../parts/states.js';

type Volume = Schemas['SharedVolume'];

export function CreateVolume({ teamId }: { teamId: string }) {
  return (
    <ModalBox title="Create a shared volume" trigger={<Button kind="primary">Create a volume</Button>}>
      {(close) => <Ready teamId={teamId} close={close} />}
    </ModalBox>
  );
}

function Ready({ teamId, close }: { teamId: string; close: () => void }) {
  const regions = useQuery(availableRegionsQuery(teamId));
  return (
    <Loaded query={regions} height={180}>
      {({ data }) =>
        data.length === 0 ? (
          <Empty title="No region is offered to the team">A volume lies in a region with GPU pools for the team.</Empty>
        ) : (
          <CreateForm teamId={teamId} regions={data} close={close} />
        )
      }
    </Loaded>
  );
}

interface CreateFormProps {
  teamId: string;
  regions: readonly { region_id: string; region_name: string }[];
  close: () => void;
}

function CreateForm({ teamId, regions, close }: CreateFormProps) {
  const [header] = useState(idempotencyKey);
  const [name, setName] = useState('');
  const [region, setRegion] = useState(regions[0]?.region_id ?? '');
  const [size, setSize] = useState('100');
  const body = { team_id: teamId, name, region_id: region, size_in_gb: Number(size) };
  const create = () => answerOf(api.POST('/api/shared-volumes', { params: { header }, body }));
  return (
    <ActionForm submit="Create" action={create} invalidates={['volumes']} done="The volume was accepted." onDone={close} onCancel={close}>
      {(problem) => (
        <>
          <Field label="Name" value={name} onChange={setName} error={problem?.fields.name} isRequired />
          <Chooser
            label="Region"
            value={region}
            choices={regions.map(({ region_id, region_name }) => ({ value: region_id, label: region_name }))}
            onChange={setRegion}
          />
          <SizeField value={size} onChange={setSize} error={problem?.fields.size_in_gb} />
        </>
      )}
    </ActionForm>
  );
}

export function VolumeActions({ volume }: { volume: Volume }) {
  const { volume_id, name, status } = volume;
  if (status === 'deleting') return null;
  return (
    <div className="actions">
      {status === 'active' && (
        <ModalBox title={`Resize ${name}`} trigger={<Button isSmall>Resize</Button>}>
          {(close) => <ResizeForm volume={volume} close={close} />}
        </ModalBox>
      )}
      <Ask
        title={`Delete ${name}`}
        question={<p>The volume is gone for good, with all that is on it. One that a pod mounts is not deleted.</p>}
        trigger={
          <Button isSmall kind="danger">
            Delete
          </Button>
        }
        submit="Delete"
        action={() => answerOf(api.DELETE('/api/shared-volumes/{volume_id}', { params: { path: { volume_id } } }))}
        invalidates={['volumes']}
        done={`${name} is being deleted.`}
      />
    </div>
  );
}

function ResizeForm({ volume: { volume_id, size_in_gb }, close }: { volume: Volume; close: () => void }) {
  const [size, setSize] = useState(String(size_in_gb));
  const resize = () =>
    answerOf(api.PUT('/api/shared-volumes/{volume_id}', { params: { path: { volume_id } }, body: { size_in_gb: Number(size) } }));
  return (
    <ActionForm submit="Resize" action={resize} invalidates={['volumes']} done="The new size was accepted." onDone={close} onCancel={close}>
      {(problem) => (
        <>
          <p>It has {gigabytes(size_in_gb)}, and can only grow.</p>
          <SizeField value={size} onChange={setSize} error={problem?.fields.size_in_gb} />
        </>
      )}
    </ActionForm>
  );
}

function SizeField({ value, onChange, error }: { value: string; onChange: (value: string) => void; error: string | undefined }) {
  return <Field label="Size in GB" type="number" value={value} onChange={onChange} hint="GB are 10^9 bytes." error={error} isRequired />;
}
