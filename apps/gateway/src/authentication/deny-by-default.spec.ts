import { describe, expect, it } from '@jest/globals';
import type { ExecutionContext } from '@nestjs/common';
import { DenyByDefault } from './deny-by-default.js';
import { Public } from './public.js';

class Routes {
  guarded(): void {}

  @Public()
  open(): void {}
}

const reaching = (handler: () => void, caller: object | null): ExecutionContext =>
  ({
    switchToHttp: () => ({ getRequest: () => ({ caller }) }),
    getHandler: () => handler,
  }) as unknown as ExecutionContext;

describe('a route that a request reached in whatever way', () => {
  const guard = new DenyByDefault();

  it('does not run without a caller', () => {
    expect(() => guard.canActivate(reaching(Routes.prototype.guarded, null))).toThrow('needs an API key');
  });

  it('runs with one, or where it says that it is public', () => {
    expect(guard.canActivate(reaching(Routes.prototype.guarded, { userId: 'ada' }))).toBe(true);
    expect(guard.canActivate(reaching(Routes.prototype.open, null))).toBe(true);
  });
});
