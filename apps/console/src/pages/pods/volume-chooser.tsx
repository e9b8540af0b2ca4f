import { useQuery } from '@tanstack/react-query';
import { Chooser } from '../../parts/fields.js';
import { allVolumesQuery } from '../volumes/volume-queries.js';

interface VolumeChooserProps {
  teamId: string;
  /** Id of the volume; empty: none. */
  value: string;
  onChange: (volume: string) => void;
}

/** A shared volume to mount; nothing where the team has none. */
export function VolumeChooser({ teamId, value, onChange }: VolumeChooserProps) {
  const volumes = useQuery(allVolumesQuery(teamId));
  const usable = (volumes.data?.data ?? []).filter(({ status }) => status === 'active');
  if (usable.length === 0) return null;
  return (
    <Chooser
      label="Shared volume"
      value={value}
      choices={[
        { value: '', label: 'None' },
        ...usable.map(({ volume_id, name }) => ({ value: volume_id, label: name })),
      ]}
      onChange={onChange}
    />
  );
}
