import { expect, it } from '@jest/globals';
import { machineServices } from '@atoll/contracts/operator';
import { platformServices } from '@atoll/service-names';
import { MachineHistory } from '@atoll/state-machine';
import { services } from './services.js';

it('the operator is shown what waits and what failed in every service, and the machines of each that has some', () => {
  expect(services.map(({ name }) => name)).toEqual([...platformServices]);
  const withMachines = services.filter(({ database: { entities } }) =>
    (entities as unknown[]).includes(MachineHistory),
  );
  expect(withMachines.map(({ name }) => name).toSorted()).toEqual([...machineServices]);
});
