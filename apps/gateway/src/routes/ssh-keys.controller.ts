import { Body, Controller, Delete, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, PageFromOne, type CallContext } from '@atoll/contracts';
import { AddSshKey, RenameSshKeyBody, SshKey, SshKeyPage, SshKeyPath, sshKeys } from '@atoll/contracts/pods';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersPage } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

const who = 'Requires a session or a key without a team.';

@ApiTags('User')
@Controller('user/ssh-key')
export class SshKeysController {
  constructor(private readonly rpc: Rpc) {}

  @Post()
  @Answers(
    201,
    SshKey,
    'Add an SSH key of the caller',
    'Opens, by SSH, the pods of the teams in which the caller may use them. Requires a log-in within the last 10 minutes, or a key without a team, unless that key was replaced. A key that is added without a second factor opens nothing in a team that required one when the caller joined it. A user has at most 100 and adds at most 120 an hour.',
  )
  addSshKey(@Body() body: AddSshKey, @Context() context: CallContext): Promise<SshKey> {
    return this.rpc.call(sshKeys.add, body, context);
  }

  @Get()
  @AnswersPage(
    SshKeyPage,
    1,
    'List the SSH keys of the caller',
    `Returns the keys in the order in which they were added. ${who}`,
  )
  listSshKeys(@Query() query: PageFromOne, @Context() context: CallContext): Promise<SshKeyPage> {
    return this.rpc.call(sshKeys.list, query, context);
  }

  @Get(':ssh_key_id')
  @Answers(200, SshKey, 'Get an SSH key of the caller', who)
  getSshKey(@Param() path: SshKeyPath, @Context() context: CallContext): Promise<SshKey> {
    return this.rpc.call(sshKeys.get, path, context);
  }

  @Put(':ssh_key_id')
  @Answers(200, SshKey, 'Rename an SSH key of the caller', who)
  renameSshKey(
    @Param() path: SshKeyPath,
    @Body() body: RenameSshKeyBody,
    @Context() context: CallContext,
  ): Promise<SshKey> {
    return this.rpc.call(sshKeys.rename, { ...path, ...body }, context);
  }

  @Delete(':ssh_key_id')
  @Answers(204, Nothing, 'Delete an SSH key of the caller', `Ends the connections that the key has opened. ${who}`)
  deleteSshKey(@Param() path: SshKeyPath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(sshKeys.remove, path, context);
  }
}
