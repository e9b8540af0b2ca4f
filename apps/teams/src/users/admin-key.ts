import { hkdfSync } from 'node:crypto';
import { createApiKey } from '@atoll/api-keys';
import { takeTurn, Transactions } from '@atoll/database';
import type { DataSource, EntityManager } from 'typeorm';
import { ApiKeysService } from '../api-keys/api-key.service.js';
import type { TeamsSettings } from '../teams-settings.js';
import { UserEntity } from '../model/user.entity.js';

/**
 * For an operator whose key is lost: a new one, in full, that does not expire. The earlier ones end in the same
 * transaction; processes that run take up to 5 s to notice. Throws an Error before the first start. Needs the tables of
 * the service and nothing that runs.
 */
export async function newAdminKey(dataSource: DataSource, settings: TeamsSettings): Promise<string> {
  await requirePepper(dataSource.manager, settings.keyPepper);
  const { apiKey } = await replaceLostKey(new Transactions(dataSource), new ApiKeysService(settings));
  return apiKey;
}

/**
 * Written at every start, which sets the pepper. The stored fingerprint distinguishes one pepper from another, and
 * reveals nothing else.
 */
export async function notePepper(manager: EntityManager, pepper: string): Promise<void> {
  await manager.query(
    `INSERT INTO key_pepper (fingerprint) VALUES ($1) ON CONFLICT (is_only) DO UPDATE SET fingerprint = excluded.fingerprint
     WHERE key_pepper.fingerprint <> excluded.fingerprint`,
    [fingerprintOf(pepper)],
  );
}

/**
 * Throws an Error for a pepper that is not the platform's: nobody would take a key that is made under it, and the
 * earlier one would have ended.
 */
async function requirePepper(manager: EntityManager, pepper: string): Promise<void> {
  const [kept] = await manager.query<{ fingerprint: Buffer }[]>('SELECT fingerprint FROM key_pepper');
  if (!kept || kept.fingerprint.equals(fingerprintOf(pepper))) return;
  throw new Error(
    'nothing was changed: ATOLL_KEY_PEPPER does not match the platform of this database. Set the matching one, or set ATOLL_DATA_DIR to its data folder.',
  );
}

function fingerprintOf(pepper: string): Buffer {
  return Buffer.from(hkdfSync('sha256', pepper, '', 'atoll fingerprint of the pepper', 32));
}

/** The operator, and their new key in the place of those they had. */
export async function replaceLostKey(
  transactions: Transactions,
  apiKeys: ApiKeysService,
): Promise<{ admin: UserEntity; apiKey: string }> {
  return transactions.run(async (manager) => {
    await lockAdministrators(manager);
    const admin = await findAdministrator(manager);
    if (!admin) throw new Error('There is no platform admin yet: start the platform once.');
    return { admin, apiKey: await replaceKey(manager, apiKeys, admin.id) };
  });
}

/** Revokes the operator's keys and issues one, which `createKey` makes. */
export async function replaceKey(
  manager: EntityManager,
  apiKeys: ApiKeysService,
  userId: string,
  createKey = createApiKey,
): Promise<string> {
  await apiKeys.revoke(manager, { userId, teamId: null });
  const [key = ''] = await apiKeys.issue(
    manager,
    [{ userId, teamId: null, expiryDate: null, ipWhitelist: '' }],
    createKey,
  );
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
