import { randomInt } from 'node:crypto';
import { AppError } from '@atoll/errors';
import { Sealer } from '@atoll/seal';
import { generateKeyPair, type SshCredential } from '@atoll/ssh';
import { Injectable } from '@nestjs/common';
import { GpuaasSettings } from '../../gpuaas-settings.js';
import { passwordPurpose, proofKeyPurpose } from '../../model/baremetal-instance.entity.js';
import { nodeCredentialPurpose, reinstallTokenPurpose } from '../../model/baremetal-node.entity.js';
import type { Tenancy } from './host-driver.js';

/** Without characters that are mistaken for each other. */
const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789';
/** 57^24 is more than 2^139. */
const passwordLength = 24;

type ProofKey = Tenancy['proofKey'];

/** Makes, seals and opens the secrets of bare metal. Each is bound to its row. */
@Injectable()
export class BaremetalSecrets {
  private readonly sealer: Sealer | undefined;

  /** Throws an Error that names a faulty entry of ATOLL_SEAL_KEYS by its position. */
  constructor({ sealKeys }: GpuaasSettings) {
    this.sealer = sealKeys === undefined ? undefined : new Sealer(sealKeys);
  }

  sealCredential(credential: SshCredential, nodeId: string): string {
    return this.required().seal(JSON.stringify(credential), nodeCredentialPurpose(nodeId));
  }

  openCredential({ credential, nodeId }: { credential: string; nodeId: string }): SshCredential {
    return JSON.parse(this.required().open(credential, nodeCredentialPurpose(nodeId)).toString()) as SshCredential;
  }

  /** A new password and a new pair of keys for an instance, sealed. */
  createFor(instanceId: string): { password: string; proofKey: string } {
    const sealer = this.required();
    const password = Array.from({ length: passwordLength }, () => alphabet[randomInt(alphabet.length)]).join('');
    return {
      password: sealer.seal(password, passwordPurpose(instanceId)),
      proofKey: sealer.seal(JSON.stringify(generateKeyPair()), proofKeyPurpose(instanceId)),
    };
  }

  openPassword({ instanceId, password }: { instanceId: string; password: string }): string {
    return this.required().open(password, passwordPurpose(instanceId)).toString();
  }

  openProofKey({ instanceId, proofKey }: { instanceId: string; proofKey: string }): ProofKey {
    return JSON.parse(this.required().open(proofKey, proofKeyPurpose(instanceId)).toString()) as ProofKey;
  }

  sealReinstallToken(nodeId: string, token: string): string {
    return this.required().seal(token, reinstallTokenPurpose(nodeId));
  }

  openReinstallToken(nodeId: string, sealed: string): string {
    return this.required().open(sealed, reinstallTokenPurpose(nodeId)).toString();
  }

  /** Throws `unavailable` where the platform cannot keep secrets. */
  required(): Sealer {
    if (this.sealer) return this.sealer;
    throw new AppError(
      'unavailable',
      'Secrets cannot be stored: the gpuaas service needs ATOLL_SEAL_KEYS in its environment.',
    );
  }
}
