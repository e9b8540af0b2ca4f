import { type CallContext, type Nothing } from '@atoll/contracts';
import { passwords, type ChangePassword } from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { PasswordsService } from './password.service.js';

@Controller()
export class PasswordsController implements Handlers<typeof passwords> {
  constructor(private readonly passwords: PasswordsService) {}

  @Handle(passwords.change)
  change(input: ChangePassword, context: CallContext): Promise<Nothing> {
    return this.passwords.change(input, context);
  }
}
