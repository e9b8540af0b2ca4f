import { Body, Controller, Delete, Get, Param, Post, Put, Query, Req, Res } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { networkOf, Nothing, type CallContext, type UserCaller } from '@atoll/contracts';
import {
  ChangePassword,
  CreateLink,
  links,
  LinkToken,
  LoggedIn,
  LogIn,
  OfUser,
  OneTimeLink,
  passwords,
  ResetPassword,
  SessionList,
  SessionPath,
  sessions,
  UsedLink,
  UseLink,
  type SessionOrigin,
} from '@atoll/contracts/teams';
import { AppError, isAppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Answers, ChangesCaller, KeepsNoAnswer } from '../answers/answers.js';
import { Attempts } from '../authentication/attempts.js';
import { Authenticator } from '../authentication/authenticator.js';
import { Anonymous } from '../authentication/public.js';
import { Context } from '../requests/call-context.js';
import { requireSameSession, tokenOfOtherSession, twoCredentials } from '../sessions/one-credential.js';
import { refreshAttemptOf, TakesRefreshAttempt } from '../sessions/refresh-attempt.js';
import { SessionCookie } from '../sessions/session-cookie.js';
import { Origin } from '../sessions/session-origin.js';

@ApiTags('Sessions')
@Controller('user')
export class SessionsController {
  constructor(
    private readonly rpc: Rpc,
    private readonly attempts: Attempts,
    private readonly authenticator: Authenticator,
    private readonly cookie: SessionCookie,
  ) {}

  @Post('login')
  @Anonymous()
  @Answers(
    200,
    LoggedIn,
    'Log in by password',
    'Opens a session, and sets its cookie. Send the access token as `Authorization: Bearer`.',
  )
  async logIn(
    @Body() body: LogIn,
    @Origin() origin: SessionOrigin,
    @Context() context: CallContext,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<LoggedIn> {
    const logIn = () => this.rpc.call(sessions.logIn, { ...body, ...origin }, context);
    return this.cookie.open(reply, await this.attempts.run(request, reply, logIn));
  }

  @Post('refresh')
  @Anonymous({ takesCookie: true })
  @TakesRefreshAttempt()
  @Answers(
    200,
    LoggedIn,
    'Refresh a session',
    'Issues an access token for the session cookie, and replaces the cookie. Sending a cookie that was already replaced ends the session, unless `Refresh-Attempt` is that of the request which replaced it.',
  )
  async refreshSession(
    @Origin() origin: SessionOrigin,
    @Context() context: CallContext,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<LoggedIn> {
    const cookie = this.cookie.read(request);
    // Whatever refuses it, a cookie that is good for nothing goes; the answer to a refresh that was good sets the next
    // one.
    if (!cookie) {
      this.cookie.clear(reply);
      throw new AppError('unauthenticated', 'There is no session. Log in.');
    }
    requireSameSession(request, cookie);
    const input = { refresh_token: cookie.refreshToken, ...refreshAttemptOf(request), ...origin };
    const refresh = () => this.rpc.call(sessions.refresh, input, context);
    try {
      return this.cookie.open(reply, await this.attempts.run(request, reply, refresh));
    } catch (error) {
      if (error instanceof AppError && error.code === 'unauthenticated') this.cookie.clear(reply);
      throw error;
    }
  }

  @Post('logout')
  @Anonymous({ takesCookie: true })
  @Answers(
    204,
    Nothing,
    'Log out',
    'Ends the session of the cookie in every tab or, without a cookie, the session of the access token. With both, of two sessions, ends that of the access token; that of the cookie only if it has the same user. Succeeds if there is none.',
  )
  async logOut(
    @Context() context: CallContext,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Nothing> {
    const cookie = this.cookie.read(request);
    const other = cookie && tokenOfOtherSession(request, cookie);
    if (cookie && other !== undefined) {
      const caller = await this.attempts.run(request, reply, () => this.callerOf(other, request));
      await this.endOwn(caller, caller.credential.id, context);
      // A cookie of another user stays: somebody else has logged in with this browser since.
      if (!(await this.endOwn(caller, cookie.sessionId, context))) return {};
    } else if (cookie) {
      const { user_id } = await this.rpc.call(sessions.logOut, { refresh_token: cookie.refreshToken }, context);
      if (user_id !== null) this.authenticator.forget(user_id);
    } else if (request.caller?.credential.kind === 'session') {
      await this.endOwn(request.caller, request.caller.credential.id, context);
    }
    this.cookie.clear(reply);
    return {};
  }

  /** Throws `unauthenticated` for an access token that is worth nothing any more. */
  private async callerOf(token: string, { address }: FastifyRequest): Promise<UserCaller> {
    try {
      // `Attempts` has charged the address.
      const charged = () => Promise.resolve();
      const attempt = { network: networkOf(address), charge: charged, refund: charged };
      return (await this.authenticator.verify(token, attempt)).caller;
    } catch (error) {
      throw isAppError(error) && error.code === 'unauthenticated' ? twoCredentials() : error;
    }
  }

  /**
   * Whether the caller had this session, which has ended now; one that another request has ended meanwhile is what was
   * asked for.
   */
  private async endOwn(caller: UserCaller, id: string, context: CallContext): Promise<boolean> {
    try {
      await this.rpc.call(sessions.end, { id }, { ...context, caller: { ...caller } });
      return true;
    } catch (error) {
      if (!isAppError(error) || error.code !== 'not_found') throw error;
      return false;
    } finally {
      this.authenticator.forget(caller.userId);
    }
  }

  @Get('sessions')
  @Answers(
    200,
    SessionList,
    'List the sessions of the caller',
    'Returns the live sessions, the newest first, at most 100.',
  )
  listSessions(@Context() context: CallContext): Promise<SessionList> {
    return this.rpc.call(sessions.list, {}, context);
  }

  @Delete('sessions/:id')
  @ChangesCaller()
  @Answers(204, Nothing, 'End a session of the caller', 'Ends a session of the caller at once.')
  endSession(@Param() path: SessionPath, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(sessions.end, path, context);
  }

  @Delete('sessions')
  @ChangesCaller()
  @Answers(
    204,
    Nothing,
    'End all sessions of a user',
    'Ends every session of the caller; or those of `user_id`, which requires platform_admin.',
  )
  endSessions(@Query() path: OfUser, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(sessions.endAll, path, context);
  }

  @Put('password')
  @ChangesCaller()
  @Answers(204, Nothing, 'Change the password of the caller', 'Ends the other sessions of the caller too.')
  changePassword(@Body() body: ChangePassword, @Context() context: CallContext): Promise<Nothing> {
    return this.rpc.call(passwords.change, body, context);
  }

  @Post('link')
  @Anonymous()
  @Answers(
    200,
    UsedLink,
    'Use a one-time link',
    'Sets the password of the link’s user and ends their sessions, or accepts an invitation. The link can be used only once.',
  )
  useOneTimeLink(
    @Body() body: UseLink,
    @Origin() { network }: SessionOrigin,
    @Context() context: CallContext,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<UsedLink> {
    return this.attempts.run(request, reply, () => this.rpc.call(links.use, { ...body, network }, context));
  }

  @Post('link/check')
  @Anonymous()
  @Answers(
    204,
    Nothing,
    'Check a one-time link',
    'Checks whether the link can be used, without using it. An unusable link gets the same error as its use would, and rate limits count the check as a use.',
  )
  checkOneTimeLink(
    @Body() body: LinkToken,
    @Context() context: CallContext,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Nothing> {
    return this.attempts.run(request, reply, () => this.rpc.call(links.check, body, context));
  }

  @Post('password-reset')
  @Anonymous()
  @Answers(
    202,
    Nothing,
    'Ask for a new password',
    'Sends a one-time link to the address if it belongs to a user and the platform can send mail. The response is the same in any case.',
  )
  async resetPassword(@Body() body: ResetPassword, @Context() context: CallContext): Promise<void> {
    await this.rpc.call(links.reset, body, context);
  }

  @Post('login-link')
  @KeepsNoAnswer()
  @Answers(
    201,
    OneTimeLink,
    'Create a one-time link',
    'Creates a link with which a user can set a password within 24 hours. It replaces earlier links, and is shown only once. Requires platform_admin.',
  )
  createOneTimeLink(@Body() body: CreateLink, @Context() context: CallContext): Promise<OneTimeLink> {
    return this.rpc.call(links.create, body, context);
  }
}
