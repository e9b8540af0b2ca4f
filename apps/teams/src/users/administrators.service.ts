import { credentialsChanged } from '@atoll/contracts/teams';
import { databaseNowMs, Transactions } from '@atoll/database';
import { Rpc } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { ApiKeysService, isLive } from '../api-keys/api-key.service.js';
import { LinkTokens } from '../tokens/link-tokens.js';
import { findAdministrator, lockAdministrators, notePepper, replaceKey } from './admin-key.js';
import { TeamsSettings } from '../teams-settings.js';
import { UserRegistry } from './user-registry.js';
import { UserEntity } from '../model/user.entity.js';

interface FirstAdmin {
  email: string;
  /** The key that the operator brings along; where there is none, one is made. */
  apiKey?: string;
}

interface EnsuredAdmin {
  /** Whether the platform had no operator before. */
  created: boolean;
  /** In full where it was made just now: to be printed once, never logged. It does not expire. */
  apiKey?: string;
  /** Whether the key that was brought along is valid. */
  acceptsBrought?: boolean;
  /** A one-time link to a first password, while there is no other way to log in: to be printed, never logged. */
  link?: string;
}

/** The operator of the platform, and the key without which nobody could sign in. */
@Injectable()
export class Administrators {
  private readonly logger = new Logger(Administrators.name);

  constructor(
    private readonly transactions: Transactions,
    private readonly registry: UserRegistry,
    private readonly apiKeys: ApiKeysService,
    private readonly links: LinkTokens,
    private readonly rpc: Rpc,
    private readonly settings: TeamsSettings,
  ) {}

  /**
   * At every start: makes the operator where there is none, and sees to it that the key brought along works. A key that
   * is new here replaces the operator's earlier ones; one that was revoked stays so. Throws an Error for a key of
   * another user.
   */
  async ensure({ email, apiKey }: FirstAdmin): Promise<EnsuredAdmin> {
    // In one transaction: a key whose link fails would be kept, and never shown.
    const { admin, replaced, ...shown } = await this.transactions.run(async (manager) => {
      await lockAdministrators(manager);
      await notePepper(manager, this.settings.keyPepper);
      const existing = await findAdministrator(manager);
      const admin = existing ?? (await this.create(manager, email));
      const key = await this.firstKey(manager, admin, existing !== null, apiKey);
      const link = await this.firstLink(manager, admin);
      return { admin, created: !existing, ...key, ...(link !== undefined && { link }) };
    });
    if (replaced) this.rpc.publish(credentialsChanged, { user_id: admin.id });
    if (replaced && !shown.created) this.logger.warn("ATOLL_ADMIN_KEY is new: the operator's earlier keys are revoked");
    if (shown.acceptsBrought === false)
      this.logger.warn('The key in ATOLL_ADMIN_KEY was revoked and is not accepted; remove it, or set another one');
    return shown;
  }

  /** The one brought along, or a new one for an operator who is new. */
  private async firstKey(
    manager: EntityManager,
    admin: UserEntity,
    exists: boolean,
    brought: string | undefined,
  ): Promise<{ replaced: boolean; apiKey?: string; acceptsBrought?: boolean }> {
    if (brought !== undefined) return this.take(manager, admin, brought);
    if (exists) return { replaced: false };
    return { replaced: true, apiKey: await replaceKey(manager, this.apiKeys, admin.id) };
  }

  /**
   * None where the operator can log in without it, or where another replica has made one just now. No other link
   * counts, since anybody may have one mailed at any time.
   */
  private async firstLink(manager: EntityManager, { id: userId, email }: UserEntity): Promise<string | undefined> {
    const [row] = await manager.query<{ is_needed: boolean }[]>(
      `SELECT NOT EXISTS (SELECT FROM password WHERE user_id = $1) AND NOT EXISTS (SELECT FROM passkey WHERE user_id = $1)
         AND NOT EXISTS (SELECT FROM user_identity WHERE user_id = $1) AND NOT EXISTS (
           SELECT FROM one_time_link WHERE user_id = $1 AND is_by_start AND used_at IS NULL AND created_at > now() - interval '1 minute') AS is_needed`,
      [userId],
    );
    if (!row?.is_needed) return undefined;
    const link = { userId, email, isProof: true, isByStart: true, replaces: 'all but removals' } as const;
    return (await this.links.issue(manager, link)).url;
  }

  private async create(manager: EntityManager, email: string): Promise<UserEntity> {
    const [id = ''] = await this.registry.findOrCreate(manager, [{ email, name: 'Administrator' }]);
    await manager.update(UserEntity, { id }, { platformAdmin: true });
    return manager.findOneByOrFail(UserEntity, { id });
  }

  private async take(
    manager: EntityManager,
    { id }: UserEntity,
    apiKey: string,
  ): Promise<{ replaced: boolean; acceptsBrought: boolean }> {
    const known = await this.apiKeys.find(manager, apiKey);
    if (known && (known.userId !== id || known.teamId !== null))
      throw new Error('ATOLL_ADMIN_KEY belongs to another user.');
    if (!known) await replaceKey(manager, this.apiKeys, id, () => apiKey);
    return { replaced: !known, acceptsBrought: !known || isLive(known, await databaseNowMs(manager)) };
  }
}
