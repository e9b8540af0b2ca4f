const names: Record<string, string> = {
  baremetal_instance: 'Bare-metal requests',
  baremetal_node: 'Bare-metal nodes',
  exposure: 'Exposed services',
  gpu: 'GPU modes',
  node: 'GPU nodes',
  pod: 'Pods',
  shared_volume: 'Shared volumes',
  subscription: 'Subscriptions',
  vm: 'VMs',
  workload: 'Workloads',
};

/** What a state machine is about, for people. */
export function machineName(machine: string): string {
  return names[machine] ?? machine.replaceAll('_', ' ');
}
