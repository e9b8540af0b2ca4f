import type { Team, TeamPage } from '@atoll/contracts/teams';

export const teamId = '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10';

export function aTeam(overrides: Partial<Team> = {}): Team {
  return {
    id: teamId,
    name: 'Research',
    description: '',
    created_at: '2026-10-01T00:00:00.000Z',
    status: 'active',
    is_suspended: false,
    require_second_factor: false,
    has_pool_subscription: false,
    members: [],
    policy_info: { policy_id: teamId, policy_name: 'default' },
    workspaces: [],
    ...overrides,
  };
}

export function aTeamPage(pagination: TeamPage['pagination']): TeamPage {
  return { data: [], pagination };
}
