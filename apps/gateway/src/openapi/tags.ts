/** The groups of operations, in their order: name and description. */
export const tags: readonly (readonly [name: string, description: string])[] = [
  ['Teams', 'Teams and their state.'],
  ['Members', 'Members of a team, their roles and their API keys.'],
  ['Workspaces', 'Parts of a team, by which usage is grouped.'],
  ['Image policies', 'Images that teams may run.'],
  ['Billing', 'Usage and its cost, by team, workspace, pool and volume.'],
  ['Prices and usage', 'Prices of SKUs, and facts about what resources hold. Requires platform_admin.'],
  ['GPU inventory', 'Regions, their GPU services (gpuaas), and nodes. Requires platform_admin.'],
  ['GPU pools', 'GPUs that are shared in one way, and their free capacity.'],
  ['Pool subscriptions', 'Capacity that a team holds in a pool.'],
  ['Workloads', 'Workloads that run on a subscription.'],
  ['Bare-metal inventory', 'Bare-metal hosts: registration, checks, maintenance. Requires platform_admin.'],
  ['Bare metal', 'Bare-metal hosts that a team has to itself.'],
  ['Connections', 'Addresses of pods and services, and instances that may attach to a GPU service.'],
  ['User', 'The caller: profile and API keys.'],
  ['Removed', 'Paths that were removed, and their replacements.'],
];
