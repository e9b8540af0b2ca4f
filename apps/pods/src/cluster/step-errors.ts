import { ClusterError } from '@atoll/cluster';
import { isAppError } from '@atoll/errors';
import { StepFailed } from '@atoll/state-machine';

const passing: ReadonlySet<string> = new Set(['unavailable', 'deadline_exceeded', 'internal', 'too_many_requests']);

/** What a cluster or another service refused, as the failure of a step. With `isPatient` no refusal is permanent. */
export function stepError(error: unknown, isPatient = false): unknown {
  if (error instanceof ClusterError)
    return new StepFailed(error.code, error.message, error.isPermanent && !isPatient, { cause: error });
  if (!isAppError(error)) return error;
  const isPermanent = !passing.has(error.code) && !isPatient;
  return new StepFailed(
    error.code,
    isPermanent ? error.message : 'A service of the platform is not responding.',
    isPermanent,
    {
      cause: error,
    },
  );
}
