/** What a deployment decides about the teams service. */
export abstract class TeamsSettings {
  /** Keys the HMAC under which API keys are stored; the gateway has the same. */
  abstract readonly keyPepper: string;
  /** The services that can hold something of a team, and so have a say in its deletion. */
  abstract readonly deletionHolders: readonly string[];
  /** How long a deletion waits for their answers. */
  abstract readonly deletionPatienceMs: number;
}
