import type { CallContext } from '@atoll/contracts';
import { AppError } from '@atoll/errors';

/** Throws `forbidden` unless the gateway asks as itself: for what is asked before anybody knows who calls. */
export function requireGateway({ caller }: CallContext): void {
  if (caller.kind !== 'system') throw new AppError('forbidden', 'Only the gateway may call this.');
}
