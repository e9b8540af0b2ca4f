import type { DemoApi } from './demo-api.js';

export interface DemoTeam {
  name: string;
  teamId: string;
  /** By name; `default` is one of them. */
  workspaces: Map<string, string>;
  ownerKey: string;
  ownerEmail: string;
}

interface Team {
  id: string;
  members: { email: string; role: string; api_key: string }[];
  workspaces: { id: string; name: string }[];
}

const teamPlans = [
  {
    name: 'Protein Lab',
    description: 'Folding and docking, mostly at night.',
    workspaces: ['folding', 'teaching'],
    members: [
      { email: 'ada@protein-lab.example', name: 'Ada Nordmann', role: 'team_owner' },
      { email: 'kofi@protein-lab.example', name: 'Kofi Mensah', role: 'team_admin' },
      { email: 'mei@protein-lab.example', name: 'Mei Lin', role: 'member' },
      { email: 'jon@protein-lab.example', name: 'Jón Þórsson', role: 'billing_viewer' },
    ],
  },
  {
    name: 'Nimbus Robotics',
    description: 'Vision models for warehouse robots.',
    workspaces: ['training', 'inference'],
    members: [
      { email: 'sofia@nimbus.example', name: 'Sofia Rossi', role: 'team_owner' },
      { email: 'arjun@nimbus.example', name: 'Arjun Rao', role: 'member' },
      { email: 'noor@nimbus.example', name: 'Noor Haddad', role: 'member' },
    ],
  },
  {
    name: 'Ledger Analytics',
    description: 'Fraud detection for small banks.',
    workspaces: ['models'],
    members: [
      { email: 'eve@ledger.example', name: 'Eve Okafor', role: 'team_owner' },
      { email: 'tom@ledger.example', name: 'Tomás Vega', role: 'viewer' },
    ],
  },
];

/** Three teams with their people and workspaces, and a policy for the one that handles money. */
export async function makeTeams(api: DemoApi): Promise<DemoTeam[]> {
  const made: DemoTeam[] = [];
  for (const { workspaces: names, ...plan } of teamPlans) {
    const team = await api.post<Team>('/team', plan);
    const workspaces = new Map(team.workspaces.map(({ id, name }) => [name, id]));
    for (const name of names)
      workspaces.set(name, (await api.post<{ id: string }>('/workspace', { team_id: team.id, name })).id);
    const owner = team.members.find(({ role }) => role === 'team_owner');
    made.push({
      name: plan.name,
      teamId: team.id,
      workspaces,
      ownerKey: owner?.api_key ?? '',
      ownerEmail: owner?.email ?? '',
    });
  }
  const objects = [
    { name: 'PyTorch', reference: 'docker.io/pytorch/pytorch' },
    { name: 'Jupyter', reference: 'quay.io/jupyter/pytorch-notebook' },
  ];
  const policy = await api.post<{ id: string }>('/policy/image', {
    name: 'audited',
    description: 'Images that were reviewed.',
    objects,
  });
  await api.post(`/policy/image/${policy.id}/assign-team`, { team_id: made[2]?.teamId });
  return made;
}
