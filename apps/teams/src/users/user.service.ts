import { maskApiKey } from '@atoll/api-keys';
import {
  notFound,
  requireUser,
  requireWholeUser,
  type CallContext,
  type Nothing,
  type UserCaller,
} from '@atoll/contracts';
import { credentialsChanged, type KeyTerms, type UpdateProfile, type User, type UserKey } from '@atoll/contracts/teams';
import { databaseNowMs, Statements, Writers } from '@atoll/database';
import { Rpc } from '@atoll/rpc';
import { invalidField, requireSomeField } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import { ApiKeysService } from '../api-keys/api-key.service.js';
import { settleTerms } from '../api-keys/key-terms.js';
import {
  requireIssuingCredential,
  requireLiveCredential,
  requireWholeCredential,
} from '../api-keys/live-credential.js';
import { TeamsSettings } from '../teams-settings.js';
import { lockUser } from './lock-user.js';
import { Timezones } from './timezones.js';
import { userQuery } from '../views/user-query.js';
import { UserEntity } from '../model/user.entity.js';

@Injectable()
export class UsersService {
  constructor(
    private readonly statements: Statements,
    private readonly writers: Writers,
    private readonly timezones: Timezones,
    private readonly apiKeys: ApiKeysService,
    private readonly rpc: Rpc,
    private readonly settings: TeamsSettings,
  ) {}

  async profile({ caller }: CallContext): Promise<User> {
    const [row] = await this.statements.query<{ user: User }>(userQuery, seenBy(requireUser(caller)));
    if (!row) throw notFound('user');
    return row.user;
  }

  async updateProfile({ name, timezone }: UpdateProfile, context: CallContext): Promise<User> {
    requireSomeField({ name, timezone }, 'name', 'timezone');
    if (timezone !== undefined && !(await this.timezones.has(timezone))) {
      throw invalidField('timezone', 'isTimezone', 'must be a name of the tz database, such as Asia/Kathmandu');
    }
    const caller = requireWholeUser(context.caller, 'change the profile of its user');
    const user = await this.writers.run(caller.userId, context, async (manager) => {
      await requireLiveCredential(manager, caller);
      await manager.update(
        UserEntity,
        { id: caller.userId },
        { ...(name !== undefined && { name }), ...(timezone !== undefined && { timezone }) },
      );
      const [row] = await manager.query<{ user: User }[]>(userQuery, seenBy(caller));
      if (!row) throw notFound('user');
      return row.user;
    });
    this.rpc.publish(credentialsChanged, { user_id: caller.userId });
    return user;
  }

  async issueKey(terms: KeyTerms, context: CallContext): Promise<UserKey> {
    const caller = requireUser(context.caller);
    const holder = { userId: caller.userId, teamId: null };
    const issued = await this.writers.once(
      // A key that is refused in there does not wait, or make wait, among the writers of its user.
      caller.scope === 'user' ? caller.userId : caller.credential.id,
      context,
      async (manager) => {
        // In here, since an answer that was kept is given again even where the expiry_date has passed since; and first,
        // as 400 goes before 403.
        const settled = settleTerms(terms, await databaseNowMs(manager));
        requireWholeUser(caller, 'make a key that acts for its user as a whole');
        // So that of two keys made at once one replaces the other.
        if (!(await lockUser(manager, caller.userId))) throw notFound('user');
        await requireIssuingCredential(manager, caller);
        const { lacksSecondFactor } = await requireWholeCredential(manager, caller, this.settings);
        const replaced = await this.apiKeys.current(manager, holder);
        const staysEndless = caller.platformAdmin && replaced?.expiryDate === null && !settled.isExpiryAsked;
        const expiryDate = staysEndless ? null : settled.expiryDate;
        const ipWhitelist = settled.ipWhitelist ?? replaced?.ipWhitelist ?? '';
        await this.apiKeys.retire(manager, holder, settled.graceSeconds);
        const [key = ''] = await this.apiKeys.issue(manager, [
          { ...holder, expiryDate, ipWhitelist, lacksSecondFactor },
        ]);
        return {
          api_key: key,
          api_token: true,
          expiry_date: expiryDate?.toISOString() ?? null,
          ip_whitelist: ipWhitelist,
        };
      },
      { keep: (reply) => ({ ...reply, api_key: maskApiKey(reply.api_key) }) },
    );
    this.rpc.publish(credentialsChanged, { user_id: caller.userId });
    return issued;
  }

  async revokeKey(context: CallContext): Promise<Nothing> {
    const { userId } = requireWholeUser(context.caller, 'revoke a key that acts for its user as a whole');
    await this.writers.run(userId, context, async (manager) => {
      if (!(await lockUser(manager, userId))) throw notFound('user');
      await this.apiKeys.revoke(manager, { userId, teamId: null });
    });
    this.rpc.publish(credentialsChanged, { user_id: userId });
    return {};
  }
}

/** The parameters of `userQuery`. */
function seenBy({ userId, scope, teams, credential }: UserCaller): unknown[] {
  const isWhole = scope !== 'membership';
  return [userId, isWhole ? null : teams.map(({ teamId }) => teamId), isWhole || credential.kind === 'session'];
}
