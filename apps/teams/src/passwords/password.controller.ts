import { passwords, type CallContext, type ChangePassword, type Nothing } from '@atoll/contracts';
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
