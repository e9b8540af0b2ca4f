import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api, idempotencyKey, type Schemas } from '../../api/client.js';
import type { Problem } from '../../api/problem.js';
import { availableRegionsQuery } from '../../api/queries.js';
import { gigabytes } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { ActionForm, ModalBox } from '../../parts/dialogs.js';
import { Chooser, Field, Toggle } from '../../parts/fields.js';
import { Empty, Loaded } from '../../parts/states.js';
import { volumesQuery } from '../volumes/volume-queries.js';
import { flavoursQuery } from './vm-queries.js';

type Region = Schemas['AvailableRegion'];
type Volume = Schemas['SharedVolume'];

export function CreateVm({ teamId }: { teamId: string }) {
  return (
    <ModalBox title="Create a VM" trigger={<Button kind="primary">Create a VM</Button>}>
      {(close) => <Ready teamId={teamId} close={close} />}
    </ModalBox>
  );
}

function Ready({ teamId, close }: { teamId: string; close: () => void }) {
  const flavours = useQuery(flavoursQuery);
  const regions = useQuery(availableRegionsQuery(teamId));
  const volumes = useQuery(volumesQuery(teamId, 1, 100));
  return (
    <Loaded query={flavours} height={240}>
      {({ data: sizes }) => (
        <Loaded query={regions} height={240}>
          {({ data: places }) => {
            if (sizes.length === 0) return <Empty title="There is no flavour">The operator has to say which sizes VMs may have.</Empty>;
            if (places.length === 0)
              return <Empty title="No region is offered to the team">A VM runs in a region with GPU pools for the team.</Empty>;
            return <VmForm teamId={teamId} flavours={sizes} regions={places} volumes={volumes.data?.data ?? []} close={close} />;
          }}
        </Loaded>
      )}
    </Loaded>
  );
}

interface VmFormProps {
  teamId: string;
  flavours: readonly Schemas['Flavour'][];
  regions: readonly Region[];
  volumes: readonly Volume[];
  close: () => void;
}

function VmForm({ teamId, flavours, regions, volumes, close }: VmFormProps) {
  const [header] = useState(idempotencyKey);
  const [name, setName] = useState('');
  const [region, setRegion] = useState(regions[0]?.region_id ?? '');
  const [flavour, setFlavour] = useState(flavours[0]?.name ?? '');
  const [image, setImage] = useState('docker.io/library/debian:13');
  const [restarts, setRestarts] = useState(true);
  const [mounts, setMounts] = useState<readonly Mount[]>([]);
  const body = {
    ...{ team_id: teamId, region_id: region, name, flavour, image, auto_restart: restarts },
    ...(mounts.length > 0 && { volumes: [...mounts] }),
  };
  const create = () => answerOf(api.POST('/api/vm', { params: { header }, body }));
  return (
    <ActionForm
      submit="Create"
      action={create}
      invalidates={['vms', 'overview']}
      done="The VM was accepted."
      onDone={close}
      onCancel={close}
    >
      {(problem) => (
        <>
          <Field
            label="Name"
            value={name}
            onChange={setName}
            hint="Lower-case letters, digits and hyphens."
            error={problem?.fields.name}
            isRequired
          />
          <Chooser
            label="Region"
            value={region}
            choices={regions.map(({ region_id, region_name }) => ({ value: region_id, label: region_name }))}
            onChange={(next) => {
              setRegion(next);
              setMounts([]);
            }}
          />
          <Chooser
            label="Flavour"
            value={flavour}
            choices={flavours.map((size) => ({
              value: size.name,
              label: size.name,
              detail: `${size.vcpus} vCPUs, ${gigabytes(size.memory_gb)}`,
            }))}
            onChange={setFlavour}
          />
          <Field
            label="Image"
            value={image}
            onChange={setImage}
            hint="One that the team’s image policy allows."
            error={problem?.fields.image}
            isRequired
          />
          <Toggle label="Restart it when it stops by itself" isOn={restarts} onChange={setRestarts} />
          <Mounts
            volumes={volumes.filter(({ region_id, status }) => region_id === region && status === 'active')}
            mounts={mounts}
            onChange={setMounts}
            problem={problem}
          />
        </>
      )}
    </ActionForm>
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
  const change = (at: number, path: string) => onChange(mounts.map((mount, index) => (index === at ? { ...mount, path } : mount)));
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
          choices={[{ value: '', label: 'None' }, ...free.map(({ volume_id, name }) => ({ value: volume_id, label: name }))]}
          onChange={(volume_id) => {
            const { name } = free.find((volume) => volume.volume_id === volume_id) ?? {};
            if (name !== undefined) onChange([...mounts, { volume_id, path: `/mnt/${name}` }]);
          }}
        />
      )}
    </>
  );
}
