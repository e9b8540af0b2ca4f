import { once } from 'node:events';
import { newId } from '@atoll/database';
import { fingerprintOf, generateKeyPair } from '@atoll/ssh';
import ssh2, { type Client } from 'ssh2';
import { AdmissionControl, LogInTrail, type Admission } from '../log-ins/admission-control.js';
import { ConnectionRegistry } from '../log-ins/connection-registry.js';
import type { ConnectionLimits } from '../log-ins/connection-limits.js';
import { SshDoor, type SshDoorOptions } from './ssh-door.js';

/** Lets in the keys of the spec, into pods that do not run. */
class ListedKeys extends AdmissionControl {
  readonly admissions = new Map<string, Admission>();
  isDown = false;

  admit(_podName: string, fingerprint: string): Promise<Admission | null> {
    if (this.isDown) return Promise.reject(new Error('the database is away'));
    return Promise.resolve(this.admissions.get(fingerprint) ?? null);
  }

  admitUser(): Promise<null> {
    return Promise.resolve(null);
  }

  revoked(): Promise<ReadonlyMap<Admission, string>> {
    return Promise.resolve(new Map());
  }
}

/** Keeps the reasons of ends. */
export class Trail extends LogInTrail {
  readonly ends: string[] = [];

  began(): Promise<string> {
    return Promise.resolve('1');
  }

  ended(_logInId: string, reason: string): Promise<void> {
    this.ends.push(reason);
    return Promise.resolve();
  }
}

export interface LogIn {
  readonly client: Client;
  /** What the door said in place of a log-in; null where the client is in. */
  readonly refusal: string | null;
}

/** A door without pods behind it, and ssh2's client: for who comes in and who does not. */
export class OpenDoorFixture {
  readonly admissionControl = new ListedKeys();
  readonly trail = new Trail();
  readonly registry: ConnectionRegistry;
  readonly door: SshDoor;
  readonly #clients = new Set<Client>();

  private constructor(limits: SshDoorOptions['limits'] & Partial<ConnectionLimits>) {
    const { admissionControl, trail } = this;
    const registry = (this.registry = new ConnectionRegistry(admissionControl, trail, limits));
    this.door = new SshDoor({
      host: '127.0.0.1',
      port: 0,
      hostKey: generateKeyPair().privateKey,
      admissionControl,
      registry,
      limits,
    });
  }

  static async start(limits: SshDoorOptions['limits'] & Partial<ConnectionLimits> = {}): Promise<OpenDoorFixture> {
    const fixture = new OpenDoorFixture(limits);
    await fixture.door.open();
    return fixture;
  }

  async stop(): Promise<void> {
    this.leave();
    await this.door.close();
  }

  /** All clients go, whatever they wait for. */
  leave(): void {
    for (const client of this.#clients) client.destroy();
    this.#clients.clear();
  }

  /** A private key that opens the pods of this user and team; one that opens nothing without. */
  key(who: Partial<Admission> | null = null): string {
    const { privateKey } = generateKeyPair();
    const parsed = ssh2.utils.parseKey(privateKey);
    if (parsed instanceof Error) throw parsed;
    const fingerprint = fingerprintOf(parsed.getPublicSSH());
    const [podId, teamId, userId, sshKeyId] = [newId(), newId(), newId(), newId()];
    const admission = { podId, podName: 'train', teamId, userId, sshKeyId, fingerprint, credential: null, run: null };
    if (who) this.admissionControl.admissions.set(fingerprint, { ...admission, ...who });
    return privateKey;
  }

  /** Offers the keys one after the other, as an agent does. */
  async logIn(keys: readonly string[], from = '127.0.0.1'): Promise<LogIn> {
    const client = new ssh2.Client();
    this.#clients.add(client);
    const refused = new Promise<string>((resolve) => {
      client.on('error', ({ message }) => resolve(message)).on('close', () => resolve('closed'));
    });
    client.connect({
      host: '127.0.0.1',
      port: this.door.port ?? 0,
      localAddress: from,
      username: 'train',
      authHandler: keys.map((key) => ({ type: 'publickey' as const, username: 'train', key })),
    });
    const refusal = await Promise.race([once(client, 'ready').then(() => null), refused]);
    return { client, refusal };
  }
}
