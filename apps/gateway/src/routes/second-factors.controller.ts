import { Body, Controller, Delete, Get, Param, Post, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, type CallContext } from '@atoll/contracts';
import {
  BeginPasskey,
  LoggedIn,
  NewPasskey,
  NewSecondFactor,
  Passkey,
  PasskeyAnswer,
  PasskeyList,
  PasskeyOptions,
  PasskeyPath,
  passkeys,
  RecoveryCodes,
  SecondFactorCode,
  secondFactors,
  SecondStep,
  type SessionOrigin,
} from '@atoll/contracts/teams';
import { Rpc } from '@atoll/rpc';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Answers, ChangesCaller, KeepsNoAnswer } from '../answers/answers.js';
import { Attempts } from '../authentication/attempts.js';
import { Anonymous } from '../authentication/public.js';
import { Context } from '../requests/call-context.js';
import { SessionCookie } from '../sessions/session-cookie.js';
import { Origin } from '../sessions/session-origin.js';

const mayAdd =
  'Requires a log-in within the last 10 minutes, with the second factor if there is one, or a key without a team for the first one.';

@ApiTags('Sessions')
@Controller('user')
export class SecondFactorsController {
  constructor(
    private readonly rpc: Rpc,
    private readonly attempts: Attempts,
    private readonly cookie: SessionCookie,
  ) {}

  @Post('login/second-factor')
  @Anonymous()
  @Answers(
    200,
    LoggedIn,
    'Log in with a second factor',
    'Takes the ticket of `second_factor_required` and a code, and opens a session.',
  )
  async logInWithSecondFactor(
    @Body() body: SecondStep,
    @Origin() origin: SessionOrigin,
    @Context() context: CallContext,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<LoggedIn> {
    const logIn = () => this.rpc.call(secondFactors.logIn, { ...body, ...origin }, context);
    return this.cookie.open(reply, await this.attempts.run(request, reply, logIn));
  }

  @Post('second-factor/begin')
  @KeepsNoAnswer()
  @Answers(
    200,
    NewSecondFactor,
    'Begin to add a second factor',
    `Creates the secret of an authenticator app. It takes effect once it is confirmed. ${mayAdd}`,
  )
  beginSecondFactor(@Context() context: CallContext): Promise<NewSecondFactor> {
    return this.rpc.call(secondFactors.begin, {}, context);
  }

  @Post('second-factor/confirm')
  @KeepsNoAnswer()
  @ChangesCaller()
  @Answers(
    200,
    RecoveryCodes,
    'Confirm a second factor',
    `Confirms the authenticator app with its first code. From then on a password log-in needs a code. ${mayAdd}`,
  )
  confirmSecondFactor(@Body() body: SecondFactorCode, @Context() context: CallContext): Promise<RecoveryCodes> {
    return this.rpc.call(secondFactors.confirm, body, context);
  }

  @Delete('second-factor')
  @Answers(
    204,
    Nothing,
    'Remove a second factor',
    'Needs a code of the authenticator app, or a recovery code. Requires a log-in within the last 10 minutes, or a key without a team. A caller with a passkey needs a log-in with the second factor.',
  )
  removeSecondFactor(@Body() body: SecondFactorCode, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(secondFactors.remove, body, context);
  }

  @Get('passkeys')
  @Answers(200, PasskeyList, 'List the passkeys of the caller', 'Returns the passkeys, the earliest first.')
  listPasskeys(@Context() context: CallContext): Promise<PasskeyList> {
    return this.rpc.call(passkeys.list, {}, context);
  }

  @Post('passkeys/begin')
  @KeepsNoAnswer()
  @Answers(
    200,
    PasskeyOptions,
    'Begin to add a passkey',
    `Creates a challenge for an authenticator, and checks the name if one is sent. ${mayAdd}`,
  )
  beginPasskey(@Body() body: BeginPasskey, @Context() context: CallContext): Promise<PasskeyOptions> {
    return this.rpc.call(passkeys.begin, body, context);
  }

  @Post('passkeys/finish')
  @KeepsNoAnswer()
  @ChangesCaller()
  @Answers(
    201,
    Passkey,
    'Add a passkey',
    `Verifies the response of the authenticator. A passkey counts as both factors at log-in. ${mayAdd}`,
  )
  addPasskey(@Body() body: NewPasskey, @Context() context: CallContext): Promise<Passkey> {
    return this.rpc.call(passkeys.finish, body, context);
  }

  @Delete('passkeys/:id')
  @Answers(204, Nothing, 'Remove a passkey', 'Requires a log-in with the second factor within the last 10 minutes.')
  removePasskey(@Param() path: PasskeyPath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(passkeys.remove, path, context);
  }

  @Post('login/passkey/begin')
  @Anonymous()
  @Answers(
    200,
    PasskeyOptions,
    'Begin a log-in by passkey',
    'Creates a challenge. No user is named: the authenticator knows whose passkey it holds.',
  )
  beginPasskeyLogIn(@Context() context: CallContext): Promise<PasskeyOptions> {
    return this.rpc.call(passkeys.beginLogIn, {}, context);
  }

  @Post('login/passkey/finish')
  @Anonymous()
  @Answers(200, LoggedIn, 'Log in by passkey', 'Verifies the response of the authenticator, and opens a session.')
  async logInByPasskey(
    @Body() body: PasskeyAnswer,
    @Origin() origin: SessionOrigin,
    @Context() context: CallContext,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<LoggedIn> {
    const logIn = () => this.rpc.call(passkeys.logIn, { ...body, ...origin }, context);
    return this.cookie.open(reply, await this.attempts.run(request, reply, logIn));
  }
}
