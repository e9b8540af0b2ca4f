import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import { ApiExcludeEndpoint, ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import { singleSignOn, SsoCallback, SsoProviderPath, SsoProviders, type SessionOrigin } from '@atoll/contracts/teams';
import { isAppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Answers } from '../answers/answers.js';
import { Attempts } from '../authentication/attempts.js';
import { Anonymous } from '../authentication/public.js';
import { errorKinds } from '../errors/error-kinds.js';
import { Context } from '../requests/call-context.js';
import { refusalHeaders, refusalPage } from '../sessions/refusal-page.js';
import { SessionCookie } from '../sessions/session-cookie.js';
import { Origin } from '../sessions/session-origin.js';
import { SsoCookie } from '../sessions/sso-cookie.js';

@ApiTags('Sessions')
@Controller('user/sso')
export class SsoController {
  constructor(
    private readonly rpc: Rpc,
    private readonly attempts: Attempts,
    private readonly cookie: SessionCookie,
    private readonly flows: SsoCookie,
  ) {}

  @Get()
  @Anonymous()
  @Answers(200, SsoProviders, 'List the providers of single sign-on', 'A browser logs in at one by opening `/api/user/sso/{provider}`.')
  listSsoProviders(@Context() context: CallContext): Promise<SsoProviders> {
    return this.rpc.call(singleSignOn.list, {}, context);
  }

  /** For browsers: leads to the provider. */
  @Get(':provider')
  @Anonymous({ fromAnyPage: true })
  @ApiExcludeEndpoint()
  async begin(@Param() path: SsoProviderPath, @Context() context: CallContext, @Res() reply: FastifyReply): Promise<void> {
    await orPage(reply, async () => {
      const { url, flow_token, expires_in } = await this.rpc.call(singleSignOn.begin, path, context);
      this.flows.set(reply, flow_token, expires_in);
      reply.redirect(url);
    });
  }

  /** For browsers, who come from the provider: sets the cookie of the session and leads to the page. No token stands in an address. */
  @Get(':provider/callback')
  @Anonymous({ fromAnyPage: true })
  @ApiExcludeEndpoint()
  async finish(
    @Param() path: SsoProviderPath,
    @Query() answer: SsoCallback,
    @Origin() origin: SessionOrigin,
    @Context() context: CallContext,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    this.flows.clear(reply);
    await orPage(reply, async () => {
      const sent = { ...answer, ...path, ...origin, flow_token: this.flows.read(request) };
      this.cookie.open(reply, await this.attempts.run(request, reply, () => this.rpc.call(singleSignOn.finish, sent, context)));
      reply.redirect('/');
    });
  }
}

/** A person looks at what comes of it. What is a bug goes its usual way. */
async function orPage(reply: FastifyReply, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isAppError(error) || error.code === 'internal') throw error;
    await reply
      .status(errorKinds[error.code].status)
      .headers(refusalHeaders)
      .type('text/html; charset=utf-8')
      .send(refusalPage(error.message));
  }
}
