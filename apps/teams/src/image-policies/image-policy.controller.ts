import { type CallContext, type Nothing, type PageFromOne } from '@atoll/contracts';
import {
  imagePolicies,
  type AssignPolicy,
  type CheckImage,
  type CreateImagePolicy,
  type ImagePolicy,
  type ImagePolicyPage,
  type ImagePolicyPath,
  type ImageVerdict,
  type ListTeamImages,
  type TeamImages,
  type UpdateImagePolicy,
} from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { ImagePoliciesService } from './image-policy.service.js';
import { TeamImagesService } from './team-images.service.js';

@Controller()
export class ImagePoliciesController implements Handlers<typeof imagePolicies> {
  constructor(
    private readonly policies: ImagePoliciesService,
    private readonly images: TeamImagesService,
  ) {}

  @Handle(imagePolicies.create)
  create(input: CreateImagePolicy, context: CallContext): Promise<ImagePolicy> {
    return this.policies.create(input, context);
  }

  @Handle(imagePolicies.list)
  list(input: PageFromOne, context: CallContext): Promise<ImagePolicyPage> {
    return this.policies.list(input, context);
  }

  @Handle(imagePolicies.get)
  get(input: ImagePolicyPath, context: CallContext): Promise<ImagePolicy> {
    return this.policies.get(input, context);
  }

  @Handle(imagePolicies.update)
  update(input: UpdateImagePolicy, context: CallContext): Promise<ImagePolicy> {
    return this.policies.update(input, context);
  }

  @Handle(imagePolicies.delete)
  delete(input: ImagePolicyPath, context: CallContext): Promise<Nothing> {
    return this.policies.delete(input, context);
  }

  @Handle(imagePolicies.assign)
  assign(input: AssignPolicy, context: CallContext): Promise<ImagePolicy> {
    return this.policies.assign(input, context);
  }

  @Handle(imagePolicies.teamImages)
  teamImages(input: ListTeamImages, context: CallContext): Promise<TeamImages> {
    return this.images.list(input, context);
  }

  @Handle(imagePolicies.check)
  check(input: CheckImage, context: CallContext): Promise<ImageVerdict> {
    return this.images.check(input, context);
  }
}
