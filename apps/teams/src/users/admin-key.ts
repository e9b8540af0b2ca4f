import { createApiKey, fingerprintOfPepper } from '@atoll/api-keys';
import { takeTurn, Transactions } from '@atoll/database';
import type { DataSource, EntityManager } from 'typeorm';
import { ApiKeysService } from '../api-keys/api-key.service.js';
import { ApiKeyEntity } from '../model/api-key.entity.js';
import type { TeamsSettings } from '../teams-settings.js';
import { UserEntity } from '../model/user.entity.js';

/**
 * For an operator whose key is lost: a new one, in full, that does not expire. The earlier ones end in the same
 * transaction; processes that run take up to 5 s to notice. `isNewPepper`: the pepper of the settings takes the place
 * of the platform's, which is lost, and all other keys stop working, that of ATOLL_ADMIN_KEY too. Throws an Error
 * before the first start, and for a pepper that is not the platform's without `isNewPepper`. Needs the tables of the
 * service and nothing that runs.
 */
export async function newAdminKey(
  dataSource: DataSource,
  settings: TeamsSettings,
  { isNewPepper = false } = {},
): Promise<string> {
  const takePepper = isNewPepper ? storePepper : requirePepper;
  return new Transactions(dataSource).run(async (manager) => {
    await lockAdministrators(manager);
    await takePepper(manager, settings.keyPepper);
    const admin = await findAdministrator(manager);
    if (!admin) throw new Error('There is no platform admin yet: start the platform once.');
    const apiKeys = new ApiKeysService(settings);
    const { adminKey } = settings;
    // Under the new pepper it would be unknown, so the next start would accept it, even one that was revoked.
    if (isNewPepper && adminKey !== undefined && !(await apiKeys.find(manager, adminKey)))
      await replaceKey(manager, apiKeys, admin.id, () => adminKey);
    return replaceKey(manager, apiKeys, admin.id);
  });
}

/**
 * At every start, in a transaction that holds `lockAdministrators`: stores the fingerprint of the pepper where no key
 * was made under another one. Throws an Error where one was, since no key of the platform would work.
 */
export async function notePepper(manager: EntityManager, pepper: string): Promise<void> {
  const kept = await storedFingerprint(manager);
  if (kept?.equals(fingerprintOfPepper(pepper))) return;
  if (kept && (await manager.exists(ApiKeyEntity))) {
    throw new Error(
      `ATOLL_KEY_PEPPER is not the one under which this platform's API keys were made: none of them would work. Set the earlier one, or set ATOLL_DATA_DIR to the data folder that holds it. If it is lost, run "npm run admin-key -- --new-pepper": it makes a key for the operator under this one, and all other keys stay invalid.`,
    );
  }
  await storePepper(manager, pepper);
}

/**
 * Throws an Error for a pepper that is not the platform's: nobody would take a key that is made under it, and the
 * earlier one would have ended.
 */
async function requirePepper(manager: EntityManager, pepper: string): Promise<void> {
  const kept = await storedFingerprint(manager);
  if (!kept || kept.equals(fingerprintOfPepper(pepper))) return;
  throw new Error(
    'nothing was changed: ATOLL_KEY_PEPPER does not match the platform of this database. Set the matching one, or set ATOLL_DATA_DIR to its data folder. If it is lost, add --new-pepper: all keys but the new one stay invalid.',
  );
}

async function storedFingerprint(manager: EntityManager): Promise<Buffer | undefined> {
  const [kept] = await manager.query<{ fingerprint: Buffer }[]>('SELECT fingerprint FROM key_pepper');
  return kept?.fingerprint;
}

async function storePepper(manager: EntityManager, pepper: string): Promise<void> {
  await manager.query(
    'INSERT INTO key_pepper (fingerprint) VALUES ($1) ON CONFLICT (is_only) DO UPDATE SET fingerprint = excluded.fingerprint',
    [fingerprintOfPepper(pepper)],
  );
}

/** Revokes the operator's keys and issues one, which `createKey` makes. */
export async function replaceKey(
  manager: EntityManager,
  apiKeys: ApiKeysService,
  userId: string,
  createKey = createApiKey,
): Promise<string> {
  await apiKeys.revoke(manager, { userId, teamId: null });
  const [key = ''] = await apiKeys.issue(manager, [{ userId, teamId: null, expiryDate: null, ipWhitelist: '' }], {
    createKey,
  });
  return key;
}

/** The first of them, where there are several. */
export function findAdministrator(manager: EntityManager): Promise<UserEntity | null> {
  return manager.findOne(UserEntity, { where: { platformAdmin: true }, order: { createdAt: 'ASC', id: 'ASC' } });
}

/**
 * So that of several replicas that start at once one makes the operator. A lock of another name, as an earlier release
 * takes, does not matter: where one has run there is an operator.
 */
export async function lockAdministrators(manager: EntityManager): Promise<void> {
  await takeTurn(manager, 'administrators');
}
