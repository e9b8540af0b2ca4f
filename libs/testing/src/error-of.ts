import { isAppError, type AppError } from '@atoll/errors';

/** The AppError of a failed call. Throws if the call succeeded or failed with another error. */
export async function errorOf(call: Promise<unknown>): Promise<AppError> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (isAppError(error)) return error;
  throw new Error('The call should have failed.', { cause: error });
}
