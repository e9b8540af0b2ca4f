import {
  notFound,
  pageWindow,
  replacedKeyRefusal,
  requireFreshLogIn,
  requireWholeUser,
  type CallContext,
  type CallerCredential,
  type Nothing,
  type PageFromOne,
  type UserCaller,
} from '@atoll/contracts';
import {
  sshKeysChanged,
  userKeysChanged,
  type AddSshKey,
  type RenameSshKey,
  type SshKey,
  type SshKeyPage,
  type SshKeyPath,
} from '@atoll/contracts/pods';
import { teamDirectory } from '@atoll/contracts/teams';
import { newId, takeTurn, Transactions, unique, Writers } from '@atoll/database';
import { AppError, tooManyRequests } from '@atoll/errors';
import { Outbox } from '@atoll/events';
import { remainingMs, Rpc, systemContext } from '@atoll/rpc';
import { BadPublicKey, parsePublicKey, type PublicKey } from '@atoll/ssh';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { SshKeyEntity } from '../model/ssh-key.entity.js';

const keysAtMost = 100;
/**
 * By one user within an hour. Each change publishes all keys of the user, up to 277 kB, which are kept for a week; and
 * each key that is removed was added before.
 */
const addedAtMost = 120;
const askAtOnce = 1_000;

/** The public keys of users, each for its own user alone. */
@Injectable()
export class SshKeysService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly writers: Writers,
    private readonly rpc: Rpc,
    private readonly outbox: Outbox,
  ) {}

  async add({ name, public_key }: AddSshKey, context: CallContext): Promise<SshKey> {
    const caller = requireWholeUser(context.caller, 'add an SSH key of its user');
    requireFreshLogIn(caller);
    const { userId } = caller;
    const { comment, fingerprint, line: publicKey, type } = readKey(public_key);
    const lacksSecondFactor = await this.requireCredential(caller, context);
    await this.requireReach(caller, context);
    const added = await this.writers.once(turnOf(userId), context, async (manager) => {
      await takeTurn(manager, turnOf(userId));
      await requireRoom(manager, userId);
      await countAdded(manager, userId);
      const values = {
        userId,
        name: name ?? (comment.slice(0, 100) || type),
        type,
        fingerprint,
        publicKey,
        lacksSecondFactor,
      };
      const key = manager.create(SshKeyEntity, { sshKeyId: newId(), createdAt: new Date(), ...values });
      await unique(manager.insert(SshKeyEntity, key), 'You have added this key already.');
      await this.tell(manager, userId);
      return view(key);
    });
    this.rpc.publish(sshKeysChanged, { user_id: userId });
    return added;
  }

  /**
   * A key opens pods after what added it has ended. A gateway may accept a credential for some seconds after its end,
   * and accepts a key that was replaced until its grace period ends, so the owner of credentials is asked. Throws
   * `unauthenticated` where it has ended, `forbidden` where it was replaced. Resolves with whether the key that it adds
   * lacks a second factor, as it does itself: such a key opens no team that required one when its user joined.
   */
  private async requireCredential({ credential: { kind, id } }: UserCaller, context: CallContext): Promise<boolean> {
    const credentials = [{ kind, id }];
    const found = await this.rpc.call(teamDirectory.liveCredentials, { credentials }, askedFor(context));
    const [live] = found.credentials;
    if (!live) throw new AppError('unauthenticated', endOf[kind]);
    if (live.is_replaced) throw replacedKeyRefusal('add an SSH key of its user');
    return live.makes_keys_without_factor === true;
  }

  /**
   * A key opens pods without a second factor, so nobody adds one by a session or API key to which a team is closed that
   * the key would reach. The owner of the teams is asked whose invitation was accepted: a stranger's invitation keeps
   * nobody from adding keys, which open nothing there.
   */
  private async requireReach({ userId, teams, credential }: UserCaller, context: CallContext): Promise<void> {
    const closed = teams
      .filter(({ lacksSecondFactor }) => lacksSecondFactor)
      .map(({ teamId }) => ({ user_id: userId, team_id: teamId }));
    for (let at = 0; at < closed.length; at += askAtOnce) {
      const members = closed.slice(at, at + askAtOnce);
      const { members: roles } = await this.rpc.call(teamDirectory.roles, { members }, askedFor(context));
      if (roles.every(({ is_invited }) => is_invited)) continue;
      throw new AppError('forbidden', outOfReach[credential.kind]);
    }
  }

  async list(asked: PageFromOne, context: CallContext): Promise<SshKeyPage> {
    const { page, limit, offset } = pageWindow(asked, 1);
    const [keys, total] = await this.dataSource.manager.findAndCount(SshKeyEntity, {
      where: { userId: wholeUser(context) },
      order: { createdAt: 'ASC', sshKeyId: 'ASC' },
      take: limit,
      skip: offset,
    });
    return { data: keys.map(view), pagination: { page, limit, total } };
  }

  async get({ ssh_key_id: sshKeyId }: SshKeyPath, context: CallContext): Promise<SshKey> {
    const key = await this.dataSource.manager.findOneBy(SshKeyEntity, { sshKeyId, userId: wholeUser(context) });
    if (!key) throw notFound('SSH key');
    return view(key);
  }

  async rename({ ssh_key_id: sshKeyId, name }: RenameSshKey, context: CallContext): Promise<SshKey> {
    const userId = wholeUser(context);
    return this.transactions.run(async (manager) => {
      await manager.update(SshKeyEntity, { sshKeyId, userId }, { name });
      const key = await manager.findOneBy(SshKeyEntity, { sshKeyId, userId });
      if (!key) throw notFound('SSH key');
      return view(key);
    });
  }

  /** From then on the key opens nothing, and what it has opened is closed. */
  async remove({ ssh_key_id: sshKeyId }: SshKeyPath, context: CallContext): Promise<Nothing> {
    const userId = wholeUser(context);
    await this.writers.run(turnOf(userId), context, async (manager) => {
      await takeTurn(manager, turnOf(userId));
      const { affected } = await manager.delete(SshKeyEntity, { sshKeyId, userId });
      if (!affected) throw notFound('SSH key');
      await this.tell(manager, userId);
    });
    this.rpc.publish(sshKeysChanged, { user_id: userId });
    return {};
  }

  /**
   * Tells bare metal and VMs all keys that the user has now. The user is locked by the transaction, so that revisions
   * are in the order of what they tell.
   */
  private async tell(manager: EntityManager, userId: string): Promise<void> {
    const [{ revision = 0 } = {}] = await manager.query<{ revision: number }[]>(
      `INSERT INTO ssh_key_owner (user_id, revision) VALUES ($1, 1)
       ON CONFLICT (user_id) DO UPDATE SET revision = ssh_key_owner.revision + 1 RETURNING revision`,
      [userId],
    );
    const keys = await manager.find(SshKeyEntity, { where: { userId }, order: { createdAt: 'ASC', sshKeyId: 'ASC' } });
    await this.outbox.add(manager, userKeysChanged, {
      user_id: userId,
      revision,
      keys: keys.map(({ publicKey }) => publicKey),
      without_factor: keys.flatMap(({ lacksSecondFactor }, at) => (lacksSecondFactor ? [at + 1] : [])),
    });
  }
}

const outOfReach: Record<CallerCredential['kind'], string> = {
  key:
    'A team whose pods this SSH key would open requires a second factor, which this API key lacks. ' +
    'Add the SSH key in a session with a second factor, or by an API key that was created in one.',
  session:
    'A team whose pods this key would open requires a second factor. Set up a second factor, or log in with yours.',
};

const endOf: Record<CallerCredential['kind'], string> = {
  key: 'The API key was revoked.',
  session: 'The session has ended. Log in again.',
};

/** What the service asks of another while it serves the call. */
function askedFor(context: CallContext): CallContext {
  return systemContext('pods', { deadlineMs: remainingMs(context), requestId: context.requestId });
}

function wholeUser({ caller }: CallContext): string {
  return requireWholeUser(caller, 'see or change the SSH keys of its user').userId;
}

function readKey(text: string): PublicKey {
  try {
    return parsePublicKey(text);
  } catch (error) {
    if (!(error instanceof BadPublicKey)) throw error;
    throw new AppError('invalid_input', `public_key: ${error.message}`, {
      errors: [{ path: 'public_key', code: 'public_key', message: error.message }],
    });
  }
}

/** Changes of the keys of one user come one after the other. */
const turnOf = (userId: string): string => `ssh_key ${userId}`;

async function requireRoom(manager: EntityManager, userId: string): Promise<void> {
  if ((await manager.countBy(SshKeyEntity, { userId })) < keysAtMost) return;
  throw new AppError('conflict', `A user has at most ${keysAtMost} SSH keys. Delete one first.`);
}

/** Throws `too_many_requests` where the user has added too many within the hour that began with the first of them. */
async function countAdded(manager: EntityManager, userId: string): Promise<void> {
  const isSameHour = `owner.added_since > now() - interval '1 hour'`;
  const [{ added = 0, left_s = 0 } = {}] = await manager.query<{ added: number; left_s: number }[]>(
    `INSERT INTO ssh_key_owner AS owner (user_id, revision, added) VALUES ($1, 0, 1)
     ON CONFLICT (user_id) DO UPDATE SET added = CASE WHEN ${isSameHour} THEN owner.added ELSE 0 END + 1,
       added_since = CASE WHEN ${isSameHour} THEN owner.added_since ELSE now() END
     RETURNING added, ceil(extract(epoch FROM added_since + interval '1 hour' - now()))::integer AS left_s`,
    [userId],
  );
  if (added > addedAtMost) throw tooManyRequests(left_s);
}

function view({ sshKeyId, name, type, fingerprint, publicKey, lacksSecondFactor, createdAt }: SshKeyEntity): SshKey {
  return {
    ssh_key_id: sshKeyId,
    name,
    type,
    fingerprint,
    public_key: publicKey,
    lacks_second_factor: lacksSecondFactor,
    created_at: createdAt.toISOString(),
  };
}
