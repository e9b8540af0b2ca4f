import { Outbox } from '@atoll/events';
import type { DurableMachine, MachineRow } from '@atoll/state-machine';
import { TeamDeletionAnswers, type Doomed, type EndingCause, type Held } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { PodSteps } from '../pods/pod-steps.js';
import { VmSteps } from '../vms/vm-steps.js';
import { VolumeSteps } from '../volumes/volume-steps.js';

/** Objects of a kind in one transaction; a team with more is asked about again. */
const batch = 500;

/** Pods, VMs and shared volumes. */
@Injectable()
export class TeamDeletion extends TeamDeletionAnswers {
  constructor(
    outbox: Outbox,
    private readonly pods: PodSteps,
    private readonly vms: VmSteps,
    private readonly volumes: VolumeSteps,
  ) {
    super('pods', outbox);
  }

  protected override async count(manager: EntityManager, { team_id, workspace_id }: Doomed): Promise<Held[]> {
    const [{ pods = 0, vms = 0, volumes = 0 } = {}] = await manager.query<
      { pods: number; vms: number; volumes: number }[]
    >(
      `SELECT
         (SELECT count(*)::int FROM pod WHERE team_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2) AND state <> 'deleted') AS pods,
         (SELECT count(*)::int FROM vm WHERE team_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2) AND state <> 'deleted') AS vms,
         (SELECT count(*)::int FROM shared_volume WHERE team_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2) AND state <> 'deleted') AS volumes`,
      [team_id, workspace_id ?? null],
    );
    return [
      { kind: 'pod', name: 'pod', count: pods },
      { kind: 'vm', name: 'VM', count: vms },
      { kind: 'shared_volume', name: 'shared volume', count: volumes },
    ];
  }

  protected override async endSome(manager: EntityManager, teamId: string, cause: EndingCause): Promise<void> {
    const held = <Row extends MachineRow>(machine: Pick<DurableMachine<Row>, 'lockWhere'>) =>
      machine.lockWhere(manager, `team_id = $1 AND state NOT IN ('deleting', 'deleted')`, [teamId], batch);
    await this.pods.moveAll(manager, await held(this.pods), 'DELETE', cause);
    await this.vms.moveAll(manager, await held(this.vms), 'DELETE', cause);
    // A cluster keeps a volume for as long as one of those pods and VMs has it.
    await this.volumes.moveAll(manager, await held(this.volumes), 'DELETE', cause);
  }
}
