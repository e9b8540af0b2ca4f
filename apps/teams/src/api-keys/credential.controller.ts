import { type CallContext } from '@atoll/contracts';
import {
  type Credential,
  credentials,
  type KeyDigest,
  type PepperComparison,
  type PepperFingerprint,
} from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { CredentialsService } from './credential.service.js';

@Controller()
export class CredentialsController implements Handlers<typeof credentials> {
  constructor(private readonly credentials: CredentialsService) {}

  @Handle(credentials.verify)
  verify(input: KeyDigest, context: CallContext): Promise<Credential> {
    return this.credentials.verify(input, context);
  }

  @Handle(credentials.comparePepper)
  comparePepper(input: PepperFingerprint, context: CallContext): Promise<PepperComparison> {
    return Promise.resolve(this.credentials.comparePepper(input, context));
  }
}
