import { ClusterError, type Trouble } from '@atoll/cluster';
import { isAppError } from '@atoll/errors';
import { StepFailed } from '@atoll/state-machine';

const passing: ReadonlySet<string> = new Set(['unavailable', 'deadline_exceeded', 'internal', 'too_many_requests']);
const finalTroubles: ReadonlySet<string> = new Set([
  'image_not_found',
  'image_needs_login',
  'image_too_large',
  'invalid',
  'not_supported',
]);

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

/** What keeps a run from its start, as the failure of a step: permanent where waiting does not help. */
export function troubleError({ code, message }: Trouble): StepFailed {
  return new StepFailed(code, message, finalTroubles.has(code));
}
