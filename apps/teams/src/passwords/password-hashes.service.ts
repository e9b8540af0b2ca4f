import { availableParallelism } from 'node:os';
import { FairSemaphore } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { hash, verify } from '@node-rs/argon2';
import { tooManyLogIns } from '../tries/log-in-tries.js';

/**
 * OWASP Password Storage Cheat Sheet, 2025: Argon2id with 19 MiB, 2 iterations, 1 lane. About 12 ms. Argon2id is the
 * library's default.
 */
const recommended = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** Half of the cores: what a flood of log-ins leaves to all the others. */
const atOnce = Math.max(1, Math.floor(availableParallelism() / 2));

/** Hashes and verifies passwords on the thread pool, few at once. Throws AppError `unavailable` where too many wait. */
@Injectable()
export class PasswordHashes {
  private readonly turns = new FairSemaphore({ permits: atOnce, maxWaiting: 64, patienceMs: 2_000 }, tooManyLogIns);
  private readonly ofNobody = hash('the password of nobody', this.cost);

  /** What a hash takes. Specs of other classes override it to take less. */
  protected get cost(): typeof recommended {
    return recommended;
  }

  hash(password: string): Promise<string> {
    return this.turns.run(() => hash(normalised(password), this.cost));
  }

  /** Without a hash to compare with it takes as long, and the password is wrong. */
  async matches(password: string, kept: string | null): Promise<boolean> {
    const matches = await this.turns.run(async () => verify(kept ?? (await this.ofNobody), normalised(password)));
    return matches && kept !== null;
  }
}

/** NIST SP 800-63B, 3.1.1.2: one password however the keyboard composes it. */
function normalised(password: string): string {
  return password.normalize('NFKC');
}
