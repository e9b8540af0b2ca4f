import { useParams } from '@tanstack/react-router';
import { useEffect } from 'react';
import type { User } from '../api/access.js';

const storageKey = 'atoll.team';

/**
 * The team of the address, and on pages of no team the one of the last address in this tab that had one, as long as the
 * user is in it; else the first of the user.
 */
export function useCurrentTeam({ teams }: User): string | undefined {
  const { teamId } = useParams({ strict: false });
  useEffect(() => {
    if (teamId !== undefined) sessionStorage.setItem(storageKey, teamId);
  }, [teamId]);
  const last = sessionStorage.getItem(storageKey);
  return teamId ?? (teams.find(({ id }) => id === last) ?? teams[0])?.id;
}
