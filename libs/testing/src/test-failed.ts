const key = Symbol.for('atoll.test-failed');

/** Notes in the global object of specs whether the body of the running test has failed, by the events of Jest. */
export function noteFailure(global: object, event: string): void {
  if (event === 'test_start') Reflect.set(global, key, false);
  if (event === 'test_fn_failure') Reflect.set(global, key, true);
}

/** Whether the body of the running test has failed: for what runs after each. */
export function hasTestFailed(): boolean {
  return Reflect.get(globalThis, key) === true;
}
