import { type CallContext, type Nothing } from '@atoll/contracts';
import {
  singleSignOn,
  type OpenedSession,
  type SsoAnswer,
  type SsoFlow,
  type SsoProviderPath,
  type SsoProviders,
} from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { SsoService } from './sso.service.js';

@Controller()
export class SsoController implements Handlers<typeof singleSignOn> {
  constructor(private readonly sso: SsoService) {}

  @Handle(singleSignOn.list)
  list(_input: Nothing, context: CallContext): Promise<SsoProviders> {
    return Promise.resolve(this.sso.list(context));
  }

  @Handle(singleSignOn.begin)
  begin(input: SsoProviderPath, context: CallContext): Promise<SsoFlow> {
    return this.sso.begin(input, context);
  }

  @Handle(singleSignOn.finish)
  finish(input: SsoAnswer, context: CallContext): Promise<OpenedSession> {
    return this.sso.finish(input, context);
  }
}
