/** The failure of a step, shown to callers; permanent if another try cannot succeed. */
export class StepFailed extends Error {
  override readonly name = 'StepFailed';

  /** `code` in snake_case; `message` is a sentence without secrets, addresses or SQL. */
  constructor(
    readonly code: string,
    message: string,
    readonly isPermanent = false,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
