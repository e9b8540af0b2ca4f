import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import { ApiExcludeEndpoint, ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import { singleSignOn, SsoCallback, SsoProviderPath, SsoProviders, type SessionOrigin } from '@atoll/contracts/teams';
import { Rpc } from '@atoll/rpc';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Answers } from '../answers/answers.js';
import { Attempts } from '../authentication/attempts.js';
import { Anonymous } from '../authentication/public.js';
import { ConfigureRoute } from '../http/route-config.js';
import { Context } from '../requests/call-context.js';
import { SessionCookie } from '../sessions/session-cookie.js';
import { Origin } from '../sessions/session-origin.js';
import { SsoCookie } from '../sessions/sso-cookie.js';

/** The provider has 5 s for its description, and 5 s each for its tokens, its keys and what it says of the person. */
const beginMs = 8_000;
const finishMs = 22_000;

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
  @Answers(
    200,
    SsoProviders,
    'List the providers of single sign-on',
    'A browser logs in at one by opening `/api/user/sso/{provider}`. Says besides whether the platform sends mail.',
  )
  listSsoProviders(@Context() context: CallContext): Promise<SsoProviders> {
    return this.rpc.call(singleSignOn.list, {}, context);
  }

  /** For browsers: leads to the provider. */
  @Get(':provider')
  @Anonymous({ byLink: true })
  @ConfigureRoute({ deadlineMs: beginMs })
  @ApiExcludeEndpoint()
  async begin(
    @Param() path: SsoProviderPath,
    @Context() context: CallContext,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { url, flow_token, expires_in } = await this.rpc.call(singleSignOn.begin, path, context);
    const state = new URL(url).searchParams.get('state') ?? '';
    this.flows.set(request, reply, { state, token: flow_token, lifeSeconds: expires_in });
    reply.redirect(url, 302);
  }

  /**
   * For browsers, who come from the provider: sets the cookie of the session and leads to the page. No token stands in
   * an address.
   */
  @Get(':provider/callback')
  @Anonymous({ byLink: true })
  // RFC 6749, 4.1.2: what a provider adds to its answer is ignored.
  @ConfigureRoute({ ignoresUnknownQuery: true, deadlineMs: finishMs })
  @ApiExcludeEndpoint()
  async finish(
    @Param() path: SsoProviderPath,
    @Query() answer: SsoCallback,
    @Origin() origin: SessionOrigin,
    @Context() context: CallContext,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const { state = '' } = answer;
    this.flows.clear(request, reply, state);
    const sent = { ...answer, ...path, ...origin, flow_token: this.flows.read(request, state) };
    this.cookie.open(
      reply,
      await this.attempts.run(request, reply, () => this.rpc.call(singleSignOn.finish, sent, context)),
    );
    reply.redirect('/', 302);
  }
}
