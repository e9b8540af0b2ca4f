import { notFound, requireService, type CallContext, type Nothing } from '@atoll/contracts';
import type {
  NewPasskey,
  OpenedSession,
  Passkey,
  PasskeyAnswerFrom,
  PasskeyList,
  PasskeyOptions,
  PasskeyPath,
  SessionOrigin,
} from '@atoll/contracts/teams';
import { instantJson, newId, Statements, Transactions } from '@atoll/database';
import { AppError, invalidField } from '@atoll/errors';
import { Injectable, Logger } from '@nestjs/common';
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
  type AuthenticationResponseJSON,
  type RegistrationResponseJSON,
} from '@simplewebauthn/server';
import type { EntityManager } from 'typeorm';
import { requireFactorCredential } from '../api-keys/live-credential.js';
import { MailBox } from '../mail/mail-box.js';
import { SessionsService } from '../sessions/session.service.js';
import { TeamsSettings } from '../teams-settings.js';
import { lockUser } from '../users/lock-user.js';
import { requireOwnUser } from '../users/whole-user.js';
import { PasskeyEntity } from '../model/passkey.entity.js';
import { relyingPartyOf, type RelyingParty } from './relying-party.js';

const challengeMinutes = 5;
const maxPasskeys = 20;
/** EdDSA, ES256 and RS256 (COSE). What else the library knows is an experiment of Node.js, which warns of it. */
const supportedAlgorithmIDs = [-8, -7, -257];
const isOver = 'The request has expired or was already answered. Start again.';

const passkeyColumns = `id, name, ${instantJson('created_at')} AS created_at, ${instantJson('last_used_at')} AS last_used_at`;

interface KnownPasskey {
  id: string;
  user_id: string;
  credential_id: string;
  public_key: Buffer;
  counter: string;
}

/**
 * Passkeys (WebAuthn): keys of an authenticator that asks for a finger, a face or a PIN. One is both factors at once.
 */
@Injectable()
export class PasskeysService {
  private readonly logger = new Logger('Sessions');
  private readonly relyingParty: RelyingParty | undefined;

  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly sessions: SessionsService,
    private readonly mail: MailBox,
    { publicUrl }: TeamsSettings,
  ) {
    this.relyingParty = relyingPartyOf(publicUrl);
  }

  async list({ caller }: CallContext): Promise<PasskeyList> {
    const { userId } = requireOwnUser(caller, 'see the passkeys of its user');
    const query = `SELECT ${passkeyColumns} FROM passkey p WHERE p.user_id = $1 ORDER BY p.created_at, p.id`;
    return { data: await this.statements.query<Passkey>(query, [userId]) };
  }

  async begin({ caller: called }: CallContext): Promise<PasskeyOptions> {
    const caller = requireOwnUser(called, 'add a passkey');
    const { id: rpID, name: rpName } = this.require();
    return this.transactions.run(async (manager) => {
      await requireFactorCredential(manager, caller);
      const [user] = await manager.query<{ email: string; name: string; known: string[] }[]>(
        `SELECT u.email, u.name, ARRAY(SELECT credential_id FROM passkey WHERE user_id = u.id) AS known FROM "user" u WHERE u.id = $1`,
        [caller.userId],
      );
      if (!user) throw notFound('user');
      if (user.known.length >= maxPasskeys) throw tooMany();
      const options = await generateRegistrationOptions({
        rpID,
        rpName,
        userID: Buffer.from(caller.userId.replaceAll('-', ''), 'hex'),
        userName: user.email,
        userDisplayName: user.name,
        excludeCredentials: user.known.map((id) => ({ id })),
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
        attestationType: 'none',
        supportedAlgorithmIDs,
      });
      return { challenge_id: await keep(manager, options.challenge, caller.userId), options: JSON.stringify(options) };
    });
  }

  async finish({ challenge_id, credential, name }: NewPasskey, context: CallContext): Promise<Passkey> {
    const caller = requireOwnUser(context.caller, 'add a passkey');
    const { id: expectedRPID, origins: expectedOrigin } = this.require();
    const expectedChallenge = await this.take(challenge_id, caller.userId);
    if (expectedChallenge === undefined) throw new AppError('conflict', isOver);
    const response = read<RegistrationResponseJSON>(credential);
    if (!response)
      throw invalidField('credential', 'isJson', 'must be the JSON of a RegistrationResponse (WebAuthn Level 3).');
    const verified = await verifyRegistrationResponse({
      response,
      expectedChallenge,
      expectedOrigin,
      expectedRPID,
      requireUserVerification: true,
      supportedAlgorithmIDs,
    }).catch(() => ({ verified: false as const }));
    if (!verified.verified)
      throw invalidField(
        'credential',
        'isSigned',
        'must be signed for the challenge by an authenticator of this platform.',
      );
    const { id: credentialId, publicKey, counter } = verified.registrationInfo.credential;
    const id = newId();
    const added = await this.transactions.run(async (manager) => {
      await requireFactorCredential(manager, caller);
      // Locked, and counted again: any number may have been begun.
      await lockUser(manager, caller.userId);
      if ((await manager.countBy(PasskeyEntity, { userId: caller.userId })) >= maxPasskeys) throw tooMany();
      if (await manager.existsBy(PasskeyEntity, { credentialId }))
        throw new AppError('conflict', 'This passkey was added before.');
      const row = {
        id,
        userId: caller.userId,
        credentialId,
        publicKey: Buffer.from(publicKey),
        counter: String(counter),
        transports: [],
        name,
      };
      await manager.insert(PasskeyEntity, row);
      if (caller.credential.kind === 'session') {
        await manager.query('UPDATE session SET has_second_factor = true WHERE id = $1', [caller.credential.id]);
      }
      await this.mail.notify(manager, caller.userId, 'factor_added');
      return manager.query<Passkey[]>(`SELECT ${passkeyColumns} FROM passkey WHERE id = $1`, [id]);
    });
    this.logger.log({ message: 'A passkey was added', user_id: caller.userId, request_id: context.requestId });
    return added[0] as Passkey;
  }

  async remove({ id }: PasskeyPath, context: CallContext): Promise<Nothing> {
    const caller = requireOwnUser(context.caller, 'remove a passkey');
    await this.transactions.run(async (manager) => {
      await requireFactorCredential(manager, caller);
      const { affected } = await manager.delete(PasskeyEntity, { id, userId: caller.userId });
      if (!affected) throw notFound('passkey');
      await this.mail.notify(manager, caller.userId, 'factor_removed');
    });
    this.logger.log({ message: 'A passkey was removed', user_id: caller.userId, request_id: context.requestId });
    return {};
  }

  /** For any passkey: the authenticator knows its user. */
  async beginLogIn(context: CallContext): Promise<PasskeyOptions> {
    requireService(context.caller);
    const options = await generateAuthenticationOptions({ rpID: this.require().id, userVerification: 'required' });
    const challenge_id = await this.transactions.run((manager) => keep(manager, options.challenge, null));
    return { challenge_id, options: JSON.stringify(options) };
  }

  async logIn(
    { challenge_id, credential, ...origin }: PasskeyAnswerFrom,
    context: CallContext,
  ): Promise<OpenedSession> {
    requireService(context.caller);
    const { id: expectedRPID, origins: expectedOrigin } = this.require();
    const expectedChallenge = await this.take(challenge_id, null);
    if (expectedChallenge === undefined) throw new AppError('unauthenticated', isOver);
    const response = read<AuthenticationResponseJSON>(credential);
    if (!response) throw notGood();
    const [known] = await this.statements.query<KnownPasskey>(
      'SELECT id, user_id, credential_id, public_key, counter FROM passkey WHERE credential_id = $1',
      [response.id],
    );
    if (!known) throw this.failed(null, origin, context);
    const verified = await verifyAuthenticationResponse({
      response,
      expectedChallenge,
      expectedOrigin,
      expectedRPID,
      requireUserVerification: true,
      credential: {
        id: known.credential_id,
        publicKey: new Uint8Array(known.public_key),
        counter: Number(known.counter),
      },
    }).catch(() => ({ verified: false as const }));
    if (!verified.verified) throw this.failed(known.user_id, origin, context);
    const counter = verified.authenticationInfo.newCounter;
    await this.transactions.run((manager) =>
      manager.query('UPDATE passkey SET counter = $2, last_used_at = now() WHERE id = $1', [known.id, counter]),
    );
    return this.sessions.open(known.user_id, origin, context, { hasSecondFactor: true, passkeyId: known.id });
  }

  private failed(userId: string | null, { address, device }: SessionOrigin, { requestId }: CallContext): AppError {
    this.logger.warn({ message: 'A log-in failed', user_id: userId, address, device, request_id: requestId });
    return notGood();
  }

  private require(): RelyingParty {
    if (this.relyingParty) return this.relyingParty;
    throw new AppError(
      'conflict',
      'Passkeys need a host name and https; ATOLL_PUBLIC_URL of this platform has an IP address or is not https.',
    );
  }

  /** Uses the challenge up, also where the answer to it is refused. */
  private async take(id: string, userId: string | null): Promise<string | undefined> {
    const [row] = await this.transactions.run((manager) =>
      manager.query<{ challenge: string }[]>(
        `WITH taken AS (
           DELETE FROM passkey_challenge WHERE id = $1 AND user_id IS NOT DISTINCT FROM $2::uuid AND expires_at > now() RETURNING challenge)
         SELECT challenge FROM taken`,
        [id, userId],
      ),
    );
    return row?.challenge;
  }
}

async function keep(manager: EntityManager, challenge: string, userId: string | null): Promise<string> {
  const id = newId();
  await manager.query(
    `INSERT INTO passkey_challenge (id, user_id, challenge, expires_at) VALUES ($1, $2, $3, now() + interval '${challengeMinutes} minutes')`,
    [id, userId, challenge],
  );
  return id;
}

const base64url = /^[\w-]+$/;

/** What has the id of a passkey. All else in it is for the library to refuse. */
function read<T extends { id: string }>(credential: string): T | undefined {
  try {
    const value = JSON.parse(credential) as { id?: unknown } | null;
    if (typeof value?.id === 'string' && base64url.test(value.id)) return value as T;
  } catch {
    // None.
  }
  return undefined;
}

function tooMany(): AppError {
  return new AppError('conflict', `You have ${maxPasskeys} passkeys already. Remove one first.`);
}

function notGood(): AppError {
  return new AppError('unauthenticated', 'The passkey is not valid here.');
}
