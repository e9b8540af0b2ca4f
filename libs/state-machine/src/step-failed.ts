/** Why a step did not do its work: typed, shown to whoever waits, and either worth another try or not. */
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
