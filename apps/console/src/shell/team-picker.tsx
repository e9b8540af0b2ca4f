import { useNavigate } from '@tanstack/react-router';
import { Chooser } from '../parts/fields.js';
import { roleName } from '../format/format.js';
import type { User } from '../api/access.js';

export function TeamPicker({ teams, teamId }: { teams: User['teams']; teamId: string | undefined }) {
  const navigate = useNavigate();
  return (
    <Chooser
      label="Team"
      value={teamId ?? ''}
      choices={teams.map(({ id, name, role }) => ({ value: id, label: name, detail: roleName(role) }))}
      onChange={(chosen) => void navigate({ to: '/teams/$teamId', params: { teamId: chosen } })}
    />
  );
}
