import { imagePolicies } from '@atoll/contracts/teams';
import { AppError } from '@atoll/errors';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';

const patienceMs = 4_000;

/** What the image policies of teams allow, for pods and VMs. */
@Injectable()
export class AllowedImages {
  constructor(private readonly rpc: Rpc) {}

  /** The image's one spelling. Throws `image_not_allowed`, and `invalid_input` for what is no image reference. */
  async require(teamId: string, image: string, requestId: string | null): Promise<string> {
    const context = systemContext('pods', { deadlineMs: patienceMs, requestId });
    const { allowed, reference } = await this.rpc.call(imagePolicies.check, { team_id: teamId, image }, context);
    if (!allowed) throw new AppError('image_not_allowed', `The image policy of the team does not allow ${reference}.`);
    return reference;
  }
}
