import { Instant, OneOf, Text } from '../fields.js';
import { NumberedId } from '../id-fields.js';

/** One try at one step on a host. */
export class BaremetalAttempt {
  @NumberedId({ example: '7', description: 'Id of the attempt.' })
  attempt_id!: string;

  @OneOf('BaremetalAction', ['check', 'provision', 'rollback', 'release', 'clean', 'reinstall', 'keys'], {
    example: 'provision',
    description: 'Action that the step belongs to.',
  })
  action!: string;

  @Text({ max: 64, example: 'set_password', description: 'Step.' })
  step!: string;

  @Instant({ description: 'Instant of its start.' })
  started_at!: string;

  @Instant({ nullable: true, description: 'Instant of its end; null while it runs.' })
  ended_at!: string | null;

  @OneOf('AttemptOutcome', ['running', 'succeeded', 'failed', 'interrupted'], {
    example: 'succeeded',
    description: 'Outcome; interrupted: the worker was lost, or the instance moved on meanwhile.',
  })
  outcome!: string;

  @Text({ max: 500, nullable: true, description: 'Reason of a failure.' })
  reason!: string | null;
}
