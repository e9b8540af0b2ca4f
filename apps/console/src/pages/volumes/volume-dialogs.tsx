import { useQuery } from '@tanstack/react-query';
import { answerOf, api, type Schemas } from '../../api/client.js';
import { availableRegionsQuery } from '../../api/queries.js';
import { gigabytes } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { DialogEmpty, DialogLoaded, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field } from '../../parts/fields.js';
import { Ask, DialogForm, FormDialog } from '../../parts/form-dialog.js';

type Volume = Schemas['SharedVolume'];

export function CreateVolume({ teamId }: { teamId: string }) {
  return (
    <ModalBox title="Create a shared volume" trigger={<Button kind="primary">Create a volume</Button>}>
      <Ready teamId={teamId} />
    </ModalBox>
  );
}

function Ready({ teamId }: { teamId: string }) {
  const regions = useQuery(availableRegionsQuery(teamId));
  return (
    <DialogLoaded
      query={regions}
      height={180}
      choices={({ data }) => data}
      none={
        <DialogEmpty title="No region is available to the team">
          A volume needs a region with GPU pools for the team.
        </DialogEmpty>
      }
    >
      {(places) => <CreateForm teamId={teamId} regions={places} />}
    </DialogLoaded>
  );
}

function CreateForm({
  teamId,
  regions,
}: {
  teamId: string;
  regions: readonly { region_id: string; region_name: string }[];
}) {
  return (
    <DialogForm
      initial={{ name: '', region_id: regions[0]?.region_id ?? '', size: '100' }}
      keptAs="new volume"
      submit="Create"
      action={({ size, ...rest }, header) =>
        answerOf(
          api.POST('/api/shared-volumes', {
            params: { header },
            body: { team_id: teamId, ...rest, size_in_gb: Number(size) },
          }),
        )
      }
      invalidates={['volumes']}
      done="The volume was accepted."
    >
      {({ field }) => (
        <>
          <Field label="Name" {...field('name')} isRequired />
          <Chooser
            label="Region"
            {...field('region_id')}
            choices={regions.map(({ region_id, region_name }) => ({ value: region_id, label: region_name }))}
          />
          <SizeField {...field('size', 'size_in_gb')} />
        </>
      )}
    </DialogForm>
  );
}

export function VolumeActions({
  volume: { volume_id, name, status },
  now: { size_in_gb },
}: {
  volume: Volume;
  now: Volume;
}) {
  if (status === 'deleting') return null;
  const params = { path: { volume_id } };
  return (
    <div className="actions">
      {status === 'active' && (
        <FormDialog
          title={`Resize ${name}`}
          trigger={<Button isSmall>Resize</Button>}
          initial={{ size: String(size_in_gb) }}
          submit="Resize"
          action={({ size }) =>
            answerOf(api.PUT('/api/shared-volumes/{volume_id}', { params, body: { size_in_gb: Number(size) } }))
          }
          invalidates={['volumes']}
          done="The new size was accepted."
        >
          {({ field }) => (
            <>
              <p>It has {gigabytes(size_in_gb)}, and can only grow.</p>
              <SizeField {...field('size', 'size_in_gb')} />
            </>
          )}
        </FormDialog>
      )}
      <Ask
        title={`Delete ${name}`}
        question={<p>The volume and its data are deleted permanently. A volume that a pod mounts cannot be deleted.</p>}
        submit="Delete"
        action={() => answerOf(api.DELETE('/api/shared-volumes/{volume_id}', { params }))}
        invalidates={['volumes']}
        done={`${name} is being deleted.`}
      />
    </div>
  );
}

function SizeField(field: { value: string; onChange: (value: string) => void; error: string | undefined }) {
  return <Field label="Size in GB" type="number" {...field} hint="GB are 10^9 bytes." isRequired />;
}
