import { isAppError, type AppError } from '@atoll/errors';

/** What a call failed of. Throws where it did not, or failed of something that is no AppError. */
export async function errorOf(call: Promise<unknown>): Promise<AppError> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (isAppError(error)) return error;
  throw new Error('The call should have failed.', { cause: error });
}
