import { exposedServices, vms } from '@atoll/contracts/pods';
import type { MachineRow } from '@atoll/state-machine';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { ExposureSteps } from '../doors/exposure-steps.js';
import { PodsFixture } from '../pods-fixture.js';
import { PodSteps } from '../pods/pod-steps.js';
import { VmSteps } from '../vms/vm-steps.js';

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start();
});
afterAll(() => fixture.stop());

it('what is reviewed together is reviewed again apart: up to a tenth of 10 minutes earlier, by chance', async () => {
  const team = await fixture.team();
  const pod = await fixture.running(team);
  const asked = { pod_name: pod.pod_name, service_name: 'web', port: 80, protocol: 'HTTP' } as const;
  const { service_id } = await fixture.untilExposed(
    await fixture.call(exposedServices.expose, asked, team.member),
    ({ status }) => status === 'active',
  );
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16.5 });
  const vm = await fixture.runningVm(team, { name: 'vm' });
  const review = async <Row extends MachineRow>(
    steps: Pick<ExposureSteps | PodSteps | VmSteps, 'table' | 'key'> & {
      rowOf(raw: object): Row;
      step(row: Row, context: { signal: AbortSignal }): Promise<unknown>;
    },
    key: string,
  ): Promise<unknown> => {
    const rows = await fixture.query<object>(`SELECT * FROM ${steps.table} WHERE ${steps.key} = $1`, [key]);
    return steps.step(steps.rowOf(rows[0] ?? {}), { signal: AbortSignal.timeout(60_000) });
  };
  for (const [chance, againAfterMs] of [
    [0, 600_000],
    [0.5, 570_000],
  ] as const) {
    const random = jest.spyOn(Math, 'random').mockReturnValue(chance);
    const found = [
      await review(fixture.get(ExposureSteps), service_id),
      await review(fixture.get(PodSteps), pod.pod_id),
      await review(fixture.get(VmSteps), vm.instance_id),
    ];
    random.mockRestore();
    expect(found.map((each) => (each as { againAfterMs: number }).againAfterMs)).toEqual(found.map(() => againAfterMs));
  }
});
