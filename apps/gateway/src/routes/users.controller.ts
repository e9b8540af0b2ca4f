import { Body, Controller, Delete, Get, Post, Put } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { KeyTerms, Nothing, UpdateProfile, User, UserKey, users, type CallContext } from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import { Answers, ChangesCaller } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('User')
@Controller('user')
export class UsersController {
  constructor(private readonly rpc: Rpc) {}

  @Get('profile')
  @Answers(200, User, 'Shows the caller.')
  profile(@Context() context: CallContext): Promise<User> {
    return this.rpc.call(users.profile, {}, context);
  }

  @Put('profile')
  @ChangesCaller()
  @Answers(200, User, "Changes the caller's name or time zone.")
  updateProfile(@Body() body: UpdateProfile, @Context() context: CallContext): Promise<User> {
    return this.rpc.call(users.updateProfile, body, context);
  }

  @Post('api-key')
  @ChangesCaller()
  @Answers(201, UserKey, 'Issues a key that acts for the caller as a whole, or rotates it. The key is shown in this answer only.')
  issueKey(@Body() body: KeyTerms, @Context() context: CallContext): Promise<UserKey> {
    return this.rpc.call(users.issueKey, body, context);
  }

  @Delete('api-key')
  @ChangesCaller()
  @Answers(204, Nothing, "Revokes the caller's keys of that kind.")
  revokeKey(@Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(users.revokeKey, {}, context);
  }
}
