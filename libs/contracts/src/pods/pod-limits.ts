import { IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Nested, WholeNumber } from '../fields.js';
import { Uuid } from '../id-fields.js';
import { Nothing } from '../page.js';
import { TeamPath } from '../team-path.js';
import { IdleStop, IdleStopOfPod } from './pod.js';

const durations = { min: 1, max: 525_600, nullable: true, example: 480 };

/**
 * How long pods may run, and how long they may idle. What a pod does not ask for is the default; where that is null,
 * the upper bound.
 */
class PodLimitFields {
  @WholeNumber({ ...durations, description: 'Default of `max_duration_minutes` of a pod; null for none.' })
  default_duration_minutes!: number | null;

  @WholeNumber({ ...durations, description: 'Upper bound of `max_duration_minutes` of a pod; null for none.' })
  longest_duration_minutes!: number | null;

  @WholeNumber({
    min: 1,
    max: 10_080,
    nullable: true,
    example: 120,
    description: 'Upper bound of `idle_stop.minutes` of a pod; null for none.',
  })
  longest_idle_minutes!: number | null;
}

const idleField = { nullable: true, description: 'Default of `idle_stop` of a pod; null for none.' };

/** As they are requested. */
export class SetPodLimits extends PodLimitFields {
  @Nested(() => IdleStop, idleField)
  default_idle_stop!: IdleStop | null;
}

/** As they are answered. */
export class PodLimits extends PodLimitFields {
  @Nested(() => IdleStopOfPod, idleField)
  default_idle_stop!: IdleStopOfPod | null;
}

class EffectivePodLimits extends PodLimits {}

export class TeamPodLimits extends PodLimits {
  @Uuid()
  team_id!: string;

  @Nested(() => EffectivePodLimits, {
    description: 'Effective limits for pods of the team, including those of the operator.',
  })
  effective!: EffectivePodLimits;
}

export class SetTeamPodLimits extends IntersectionType(TeamPath, SetPodLimits) {}

export const podLimits = contract('pods.limits', {
  get: operation(Nothing, PodLimits),
  set: operation(SetPodLimits, PodLimits),
  ofTeam: operation(TeamPath, TeamPodLimits),
  setOfTeam: operation(SetTeamPodLimits, TeamPodLimits),
});
