import { type CallContext, type Nothing } from '@atoll/contracts';
import {
  links,
  type CreateLink,
  type LinkToken,
  type OneTimeLink,
  type ResetPassword,
  type UsedLink,
  type UseLinkFrom,
} from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { LinksService } from './link.service.js';

@Controller()
export class LinksController implements Handlers<typeof links> {
  constructor(private readonly links: LinksService) {}

  @Handle(links.check)
  check(input: LinkToken, context: CallContext): Promise<Nothing> {
    return this.links.check(input, context);
  }

  @Handle(links.use)
  use(input: UseLinkFrom, context: CallContext): Promise<UsedLink> {
    return this.links.use(input, context);
  }

  @Handle(links.reset)
  reset(input: ResetPassword, context: CallContext): Promise<Nothing> {
    return this.links.reset(input, context);
  }

  @Handle(links.create)
  create(input: CreateLink, context: CallContext): Promise<OneTimeLink> {
    return this.links.create(input, context);
  }
}
