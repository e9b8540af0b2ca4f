import { Body, Controller, Delete, Get, Post, Put } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, type CallContext } from '@atoll/contracts';
import { KeyTerms, UpdateProfile, User, UserKey, users } from '@atoll/contracts/teams';
import { Rpc } from '@atoll/rpc';
import { Answers, ChangesCaller } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('User')
@Controller('user')
export class UsersController {
  constructor(private readonly rpc: Rpc) {}

  @Get('profile')
  @Answers(200, User, 'Get the profile of the caller', 'Returns the user whose API key was sent.')
  getProfile(@Context() context: CallContext): Promise<User> {
    return this.rpc.call(users.profile, {}, context);
  }

  @Put('profile')
  @ChangesCaller()
  @Answers(200, User, 'Update the profile of the caller', 'Changes the name or the time zone.')
  updateProfile(@Body() body: UpdateProfile, @Context() context: CallContext): Promise<User> {
    return this.rpc.call(users.updateProfile, body, context);
  }

  @Post('api-key')
  @ChangesCaller()
  @Answers(
    201,
    UserKey,
    'Issue an API key of the caller',
    'Issues an API key of the caller that is not limited to a team, or replaces the existing one. The key is shown only in this response.',
  )
  issueUserKey(@Body() body: KeyTerms, @Context() context: CallContext): Promise<UserKey> {
    return this.rpc.call(users.issueKey, body, context);
  }

  @Delete('api-key')
  @ChangesCaller()
  @Answers(
    204,
    Nothing,
    'Revoke the API keys of the caller',
    'Revokes the API keys of the caller that are not limited to a team. Keys to teams stay valid.',
  )
  revokeUserKeys(@Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(users.revokeKey, {}, context);
  }
}
