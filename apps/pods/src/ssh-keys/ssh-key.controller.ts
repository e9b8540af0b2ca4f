import { type CallContext, type Nothing, type PageFromOne } from '@atoll/contracts';
import {
  sshKeys,
  type AddSshKey,
  type RenameSshKey,
  type SshKey,
  type SshKeyPage,
  type SshKeyPath,
} from '@atoll/contracts/pods';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { SshKeysService } from './ssh-key.service.js';

@Controller()
export class SshKeysController implements Handlers<typeof sshKeys> {
  constructor(private readonly keys: SshKeysService) {}

  @Handle(sshKeys.add)
  add(input: AddSshKey, context: CallContext): Promise<SshKey> {
    return this.keys.add(input, context);
  }

  @Handle(sshKeys.list)
  list(input: PageFromOne, context: CallContext): Promise<SshKeyPage> {
    return this.keys.list(input, context);
  }

  @Handle(sshKeys.get)
  get(input: SshKeyPath, context: CallContext): Promise<SshKey> {
    return this.keys.get(input, context);
  }

  @Handle(sshKeys.rename)
  rename(input: RenameSshKey, context: CallContext): Promise<SshKey> {
    return this.keys.rename(input, context);
  }

  @Handle(sshKeys.remove)
  remove(input: SshKeyPath, context: CallContext): Promise<Nothing> {
    return this.keys.remove(input, context);
  }
}
