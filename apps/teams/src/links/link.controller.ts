import { type CallContext, type Nothing } from '@atoll/contracts';
import { links, type CreateLink, type OneTimeLink, type ResetPassword, type UsedLink, type UseLink } from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { LinksService } from './link.service.js';

@Controller()
export class LinksController implements Handlers<typeof links> {
  constructor(private readonly links: LinksService) {}

  @Handle(links.use)
  use(input: UseLink, context: CallContext): Promise<UsedLink> {
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
