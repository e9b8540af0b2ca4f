import { type CallContext, type Nothing } from '@atoll/contracts';
import { users, type KeyTerms, type UpdateProfile, type User, type UserKey } from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { UsersService } from './user.service.js';

@Controller()
export class UsersController implements Handlers<typeof users> {
  constructor(private readonly users: UsersService) {}

  @Handle(users.profile)
  profile(_input: Nothing, context: CallContext): Promise<User> {
    return this.users.profile(context);
  }

  @Handle(users.updateProfile)
  updateProfile(input: UpdateProfile, context: CallContext): Promise<User> {
    return this.users.updateProfile(input, context);
  }

  @Handle(users.issueKey)
  issueKey(input: KeyTerms, context: CallContext): Promise<UserKey> {
    return this.users.issueKey(input, context);
  }

  @Handle(users.revokeKey)
  revokeKey(_input: Nothing, context: CallContext): Promise<Nothing> {
    return this.users.revokeKey(context);
  }
}
