import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';
import type { CallContext } from '@atoll/contracts';
import { passkeys, type OpenedSession } from '@atoll/contracts/teams';
import { gateway, home } from '../sessions/session-fixture.js';
import type { TeamsFixture } from '../teams-fixture.js';

/** Of a platform that has passkeys: its host is their relying party. */
export const publicUrl = 'https://atoll.example.com';

const sha256 = (data: string | Buffer): Buffer => createHash('sha256').update(data).digest();

/**
 * An authenticator in software (WebAuthn Level 3): one P-256 key, for one relying party, which has verified its user.
 */
export class Authenticator {
  private readonly id = randomBytes(32);
  private readonly key: KeyObject;
  private readonly coseKey: Buffer;
  /** The signature counter of the next answer. */
  counter = 1;

  constructor(
    private readonly rpId: string,
    private readonly origin: string,
  ) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
    this.key = privateKey;
    // COSE_Key (RFC 9053, section 7.1) as CBOR: {1: 2, 3: -7, -1: 1, -2: x, -3: y}.
    const [head, before] = [Buffer.from('a5010203262001215820', 'hex'), Buffer.from('225820', 'hex')];
    this.coseKey = Buffer.concat([head, Buffer.from(x, 'base64url'), before, Buffer.from(y, 'base64url')]);
  }

  /** The credential that answers the options of a registration, as a browser sends it. */
  register(options: string, transports: unknown = ['internal']): string {
    const length = Buffer.from([0, this.id.length]);
    const attested = Buffer.concat([Buffer.alloc(16), length, this.id, this.coseKey]);
    const authData = Buffer.concat([this.authenticatorData(0x45), attested]);
    // CBOR: {"fmt": "none", "attStmt": {}, "authData": authData}.
    const head = Buffer.from('a363666d74646e6f6e656761747453746d74a068617574684461746158', 'hex');
    const attestationObject = Buffer.concat([head, Buffer.from([authData.length]), authData]).toString('base64url');
    const clientDataJSON = this.clientData('webauthn.create', options).toString('base64url');
    return this.credential({ attestationObject, clientDataJSON, transports });
  }

  /** The credential that answers the options of a log-in. */
  logIn(options: string): string {
    const [authenticatorData, clientData] = [this.authenticatorData(0x05), this.clientData('webauthn.get', options)];
    const signature = sign('sha256', Buffer.concat([authenticatorData, sha256(clientData)]), this.key);
    return this.credential({
      authenticatorData: authenticatorData.toString('base64url'),
      clientDataJSON: clientData.toString('base64url'),
      signature: signature.toString('base64url'),
    });
  }

  private authenticatorData(flags: number): Buffer {
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(this.counter++);
    return Buffer.concat([sha256(this.rpId), Buffer.from([flags]), counter]);
  }

  private clientData(type: string, options: string): Buffer {
    const { challenge } = JSON.parse(options) as { challenge: string };
    return Buffer.from(JSON.stringify({ type, challenge, origin: this.origin, crossOrigin: false }));
  }

  private credential(response: object): string {
    const id = this.id.toString('base64url');
    return JSON.stringify({ id, rawId: id, type: 'public-key', clientExtensionResults: {}, response });
  }
}

export function anAuthenticator(): Authenticator {
  return new Authenticator(new URL(publicUrl).hostname, publicUrl);
}

/** What a browser answers to a registration that is begun. */
export async function answerOf(fixture: TeamsFixture, context: CallContext, authenticator: Authenticator) {
  const { challenge_id, options } = await fixture.ask(passkeys.begin, {}, context);
  return { challenge_id, credential: authenticator.register(options), name: 'Laptop' };
}

export async function addPasskey(fixture: TeamsFixture, context: CallContext, authenticator: Authenticator) {
  return fixture.ask(passkeys.finish, await answerOf(fixture, context, authenticator), context);
}

export async function logInBy(fixture: TeamsFixture, authenticator: Authenticator): Promise<OpenedSession> {
  const { challenge_id, options } = await fixture.ask(passkeys.beginLogIn, {}, gateway);
  return fixture.ask(passkeys.logIn, { challenge_id, credential: authenticator.logIn(options), ...home }, gateway);
}
