import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { Schemas } from '../../api/client.js';
import { availableRegionsQuery } from '../../api/queries.js';
import { gigabytes, instant } from '../../format/format.js';
import { Chip } from '../../parts/chip.js';
import { Paged } from '../../parts/paged.js';
import { Page } from '../../parts/page.js';
import { Empty } from '../../parts/states.js';
import { Table, type Column } from '../../parts/table.js';
import { may } from '../../api/access.js';
import { useUser } from '../../api/user-context.js';
import { CreateVolume, VolumeActions } from './volume-dialogs.js';
import { volumesQuery } from './volume-queries.js';

type Volume = Schemas['SharedVolume'];

export function VolumesPage() {
  const { teamId } = useParams({ from: '/in/teams/$teamId' });
  const { page = '1' } = useSearch({ from: '/in/teams/$teamId/volumes' });
  const navigate = useNavigate({ from: '/teams/$teamId/volumes' });
  const user = useUser();
  const mayUse = may(user, teamId, 'useResources');
  const volumes = useQuery(volumesQuery(teamId, Number(page)));
  const regions = useQuery(availableRegionsQuery(teamId));
  const regionNames = new Map((regions.data?.data ?? []).map(({ region_id, region_name }) => [region_id, region_name]));
  return (
    <Page
      title="Shared volumes"
      lead="Files that several pods read and write, billed from creation to deletion."
      actions={mayUse && <CreateVolume teamId={teamId} />}
    >
      <Paged
        label="Shared volumes"
        query={volumes}
        page={page}
        first={1}
        height={240}
        onTurn={(next) => void navigate({ search: { page: next } })}
      >
        {({ data, pagination }) => (
          <Table
            label="Shared volumes"
            rows={data}
            keyOf={({ volume_id }) => volume_id}
            empty={
              pagination.total === 0 && (
                <Empty title="No shared volumes">A volume outlives the pods that mount it.</Empty>
              )
            }
            columns={columns(regionNames, user.timezone, mayUse)}
          />
        )}
      </Paged>
    </Page>
  );
}

function columns(regionNames: ReadonlyMap<string, string>, zone: string, mayUse: boolean): Column<Volume>[] {
  return [
    {
      title: 'Volume',
      isHead: true,
      cell: ({ name, region_id }) => (
        <span className="given">
          {name}
          <br />
          <span className="hint">{regionNames.get(region_id) ?? `region ${region_id}`}</span>
        </span>
      ),
    },
    {
      title: 'State',
      cell: ({ status, reason }) => (
        <>
          <Chip state={status} />
          {reason !== null && <p className="hint given">{reason}</p>}
        </>
      ),
    },
    { title: 'Used', cell: (volume) => <Used volume={volume} /> },
    { title: 'Created', isWhole: true, cell: ({ created_at }) => instant(created_at, zone) },
    ...(mayUse
      ? [{ title: '', cell: (volume: Volume, now: Volume) => <VolumeActions volume={volume} now={now} /> }]
      : []),
  ];
}

function Used({ volume: { name, used_size_in_gb: used, size_in_gb: size } }: { volume: Volume }) {
  if (used === null) return <>– of {gigabytes(size)}</>;
  return (
    <span className="stack-tight">
      {gigabytes(used)} of {gigabytes(size)}
      <meter
        min={0}
        max={size}
        high={size * 0.9}
        optimum={0}
        value={Math.min(used, size)}
        aria-label={`Used of ${name}`}
      />
    </span>
  );
}
