import { useQuery } from '@tanstack/react-query';
import { answerOf, api, type Schemas } from '../../api/client.js';
import type { Problem } from '../../api/problem.js';
import { availableRegionsQuery } from '../../api/queries.js';
import { gigabytes } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { DialogEmpty, DialogLoaded, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field, Toggle } from '../../parts/fields.js';
import { DialogForm } from '../../parts/form-dialog.js';
import { allVolumesQuery } from '../volumes/volume-queries.js';
import { flavoursQuery } from './vm-queries.js';

type Region = Schemas['AvailableRegion'];
type Volume = Schemas['SharedVolume'];

export function CreateVm({ teamId }: { teamId: string }) {
  return (
    <ModalBox title="Create a VM" trigger={<Button kind="primary">Create a VM</Button>}>
      <Ready teamId={teamId} />
    </ModalBox>
  );
}

function Ready({ teamId }: { teamId: string }) {
  const flavours = useQuery(flavoursQuery);
  const regions = useQuery(availableRegionsQuery(teamId));
  const volumes = useQuery(allVolumesQuery(teamId));
  return (
    <DialogLoaded
      query={flavours}
      height={240}
      choices={({ data }) => data}
      none={<DialogEmpty title="There is no flavour">The operator has to say which sizes VMs may have.</DialogEmpty>}
    >
      {(sizes) => (
        <DialogLoaded
          query={regions}
          height={240}
          choices={({ data }) => data}
          none={
            <DialogEmpty title="No region is available to the team">
              A VM needs a region with GPU pools for the team.
            </DialogEmpty>
          }
        >
          {(places) => <VmForm teamId={teamId} flavours={sizes} regions={places} volumes={volumes.data?.data ?? []} />}
        </DialogLoaded>
      )}
    </DialogLoaded>
  );
}

interface VmFormProps {
  teamId: string;
  flavours: readonly Schemas['Flavour'][];
  regions: readonly Region[];
  volumes: readonly Volume[];
}

function VmForm({ teamId, flavours, regions, volumes }: VmFormProps) {
  const initial = {
    ...{ name: '', region_id: regions[0]?.region_id ?? '', flavour: flavours[0]?.name ?? '' },
    ...{ image: 'docker.io/library/debian:13', auto_restart: true, mounts: [] as readonly Mount[] },
  };
  return (
    <DialogForm
      initial={initial}
      keptAs="new VM"
      submit="Create"
      action={({ mounts, ...rest }, header) => {
        const body = { team_id: teamId, ...rest, ...(mounts.length > 0 && { volumes: [...mounts] }) };
        return answerOf(api.POST('/api/vm', { params: { header }, body }));
      }}
      invalidates={['vms', 'overview']}
      done="The VM was accepted."
    >
      {({ values, set, field, problem }) => (
        <>
          <Field label="Name" {...field('name')} hint="Lower-case letters, digits and hyphens." isRequired />
          <Chooser
            label="Region"
            {...field('region_id')}
            choices={regions.map(({ region_id, region_name }) => ({ value: region_id, label: region_name }))}
            onChange={(region_id) => set({ region_id, mounts: [] })}
          />
          <Chooser
            label="Flavour"
            {...field('flavour')}
            choices={flavours.map(({ name, vcpus, memory_gb }) => ({
              ...{ value: name, label: name },
              detail: `${vcpus} vCPUs, ${gigabytes(memory_gb)}`,
            }))}
          />
          <Field label="Image" {...field('image')} hint="One that the team’s image policy allows." isRequired />
          <Toggle label="Restart it when it stops by itself" isOn={values.auto_restart} {...field('auto_restart')} />
          <Mounts
            volumes={volumes.filter(({ region_id, status }) => region_id === values.region_id && status === 'active')}
            mounts={values.mounts}
            onChange={(mounts) => set({ mounts })}
            problem={problem}
          />
        </>
      )}
    </DialogForm>
  );
}

interface Mount {
  volume_id: string;
  path: string;
}

interface MountsProps {
  volumes: readonly Volume[];
  mounts: readonly Mount[];
  onChange: (mounts: readonly Mount[]) => void;
  problem: Problem | null;
}

/** The shared volumes that it mounts; nothing where the region has none. */
function Mounts({ volumes, mounts, onChange, problem }: MountsProps) {
  const free = volumes.filter(({ volume_id }) => !mounts.some((mount) => mount.volume_id === volume_id));
  const [next] = free;
  const change = (at: number, path: string) =>
    onChange(mounts.map((mount, index) => (index === at ? { ...mount, path } : mount)));
  return (
    <>
      {mounts.map(({ volume_id, path }, at) => {
        const name = volumes.find((volume) => volume.volume_id === volume_id)?.name ?? volume_id;
        return (
          <div key={volume_id} className="toolbar">
            <Field
              label={`${name} mounted at`}
              value={path}
              onChange={(changed) => change(at, changed)}
              error={problem?.fields[`volumes.${at}.path`]}
              isRequired
            />
            <Button isSmall onPress={() => onChange(mounts.filter((mount) => mount.volume_id !== volume_id))}>
              Remove {name}
            </Button>
          </div>
        );
      })}
      {next !== undefined && (
        <Chooser
          label="Mount a shared volume"
          value=""
          choices={[
            { value: '', label: 'None' },
            ...free.map(({ volume_id, name }) => ({ value: volume_id, label: name })),
          ]}
          onChange={(volume_id) => {
            const { name } = free.find((volume) => volume.volume_id === volume_id) ?? {};
            if (name !== undefined) onChange([...mounts, { volume_id, path: `/mnt/${name}` }]);
          }}
        />
      )}
    </>
  );
}
