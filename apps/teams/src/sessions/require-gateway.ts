import type { CallContext } from '@atoll/contracts';
import { AppError } from '@atoll/errors';

/** Throws `forbidden` unless the gateway itself is the caller: for operations before the user is known. */
export function requireGateway({ caller }: CallContext): void {
  if (caller.kind !== 'system') throw new AppError('forbidden', 'Only the gateway may call this.');
}
