import { isOperator, may, type User } from '../api/access.js';

export interface Destination {
  name: string;
  to: string;
  group: string;
  /** What the command palette says of it; the group if left out. */
  detail?: string;
}

/** Where this user can go, in the order of the sidebar; the command palette has the same list. */
export function destinations(user: User, teamId: string | undefined): Destination[] {
  const team = teamId === undefined ? [] : teamDestinations(user, teamId);
  // A key that opens one team is nobody's own.
  const own = user.second_factor === null ? [] : ownDestinations;
  return [...team, ...own, ...(isOperator(user) ? operatorDestinations : [])];
}

function teamDestinations(user: User, teamId: string): Destination[] {
  const at = `/teams/${teamId}`;
  const group = 'Team';
  const name = user.teams.find(({ id }) => id === teamId)?.name;
  return [
    { group, name: 'Overview', to: at, ...(name !== undefined && { detail: `Team ${name}` }) },
    ...(may(user, teamId, 'readBilling')
      ? [
          { group, name: 'Billing', to: `${at}/billing` },
          { group, name: 'Compare months', to: `${at}/billing/compare` },
        ]
      : []),
    { group, name: 'GPU pools', to: `${at}/pools` },
    { group, name: 'Subscriptions', to: `${at}/subscriptions` },
    { group, name: 'Pods', to: `${at}/pods` },
    ...(may(user, teamId, 'useResources') ? [{ group, name: 'Logs', to: `${at}/logs` }] : []),
    { group, name: 'VMs', to: `${at}/vms` },
    { group, name: 'Shared volumes', to: `${at}/volumes` },
    { group, name: 'Bare metal', to: `${at}/baremetal` },
    { group, name: 'Members and keys', to: `${at}/members` },
    { group, name: 'Team settings', to: `${at}/settings` },
  ];
}

const ownDestinations: readonly Destination[] = [{ group: 'You', name: 'SSH keys', to: '/profile/ssh-keys' }];

const operatorDestinations: readonly Destination[] = [
  { group: 'Operator', name: 'What waits or failed', to: '/operator/machines' },
  { group: 'Operator', name: 'Dead letters', to: '/operator/dead-letters' },
  { group: 'Operator', name: 'Regions', to: '/operator/regions' },
  { group: 'Operator', name: 'Clusters', to: '/operator/clusters' },
  { group: 'Operator', name: 'Nodes', to: '/operator/nodes' },
  { group: 'Operator', name: 'Pools', to: '/operator/pools' },
  { group: 'Operator', name: 'All subscriptions', to: '/operator/subscriptions' },
  { group: 'Operator', name: 'Bare-metal nodes', to: '/operator/baremetal' },
  { group: 'Operator', name: 'VM flavours', to: '/operator/flavours' },
  { group: 'Operator', name: 'Prices', to: '/operator/prices' },
  { group: 'Operator', name: 'Image policies', to: '/operator/policies' },
  { group: 'Operator', name: 'Teams', to: '/operator/teams' },
];
