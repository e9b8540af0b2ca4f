import { fingerprintOfPepper } from '@atoll/api-keys';
import { credentials } from '@atoll/contracts/teams';
import { isAppError } from '@atoll/errors';
import { Rpc, systemContext } from '@atoll/rpc';
import { Rounds, ThrottledLog } from '@atoll/waiting';
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { GatewaySettings } from '../gateway-options.js';

const everyMs = 5_000;

/**
 * Asks the teams service, every 5 s, whether it has the pepper of this gateway, which would otherwise only look as if
 * every key were unknown. While nobody answers, as where that service is of an older release, the last answer holds.
 */
@Injectable()
export class PepperCheck implements OnApplicationBootstrap, OnModuleDestroy {
  readonly #logger = new Logger(PepperCheck.name);
  readonly #errors = new ThrottledLog((line) => this.#logger.error(line));
  readonly #rounds = new Rounds(() => this.#ask().then(() => everyMs));
  readonly #fingerprint: string;
  #differs = false;

  constructor(
    private readonly rpc: Rpc,
    private readonly settings: GatewaySettings,
  ) {
    this.#fingerprint = fingerprintOfPepper(settings.keyPepper).toString('hex');
  }

  onApplicationBootstrap(): void {
    this.#rounds.start();
  }

  /** A question that is under way is not waited for. */
  onModuleDestroy(): void {
    void this.#rounds.stop();
  }

  /** Why this gateway knows no key; null where it has the pepper of the teams service, or nobody has answered yet. */
  reason(): string | null {
    return this.#differs ? 'ATOLL_KEY_PEPPER differs from that of teams' : null;
  }

  async #ask(): Promise<void> {
    try {
      const context = systemContext('gateway', { deadlineMs: this.settings.deadlineMs });
      const { is_same } = await this.rpc.call(credentials.comparePepper, { fingerprint: this.#fingerprint }, context);
      this.#differs = !is_same;
      if (is_same) return this.#errors.forget();
      this.#errors.log('differs', {
        message:
          'ATOLL_KEY_PEPPER is not that of the teams service: this gateway refuses every API key. Set the same one in both.',
      });
    } catch (error) {
      if (!isAppError(error)) throw error;
    }
  }
}
