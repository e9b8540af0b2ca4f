import { asProblem, faultAt } from '../../api/problem.js';

/** How long after the platform was asked for its time a price starts, so that its start has not passed on arrival. */
export const leadSeconds = 10;

/**
 * The start of a price that is to apply at once, for one form. Each time that the form is sent it has the same start,
 * so that the platform knows the call again by its idempotency key.
 */
export class PriceStart {
  private made: string | undefined;

  /**
   * `readDate` gives the `Date` header (RFC 9110, 6.6.1) of an answer of the platform: the clock of the browser is not
   * used.
   */
  constructor(private readonly readDate: () => Promise<string | null>) {}

  /** Sets a price from that start. Throws what `set` throws. */
  async send<Answer>(set: (validFrom: string) => Promise<Answer>): Promise<Answer> {
    const isSentAgain = this.made !== undefined;
    this.made ??= await this.next();
    try {
      return await set(this.made);
    } catch (error) {
      // The price was not set the first time, and its start has passed meanwhile.
      if (!isSentAgain || faultAt(asProblem(error), 'valid_from') === undefined) throw error;
      this.made = await this.next();
      return set(this.made);
    }
  }

  private async next(): Promise<string> {
    const date = await this.readDate();
    return new Date(Date.parse(date ?? '') + leadSeconds * 1_000).toISOString();
  }
}
