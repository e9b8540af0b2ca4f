import { IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Flag, Instant, ListOf, Text } from '../fields.js';
import { Uuid } from '../id-fields.js';
import { imageReference } from '../image-reference.js';
import { ListOrPageOf, Nothing, PageFromOne, PageFromOneOrAll, PageOf } from '../page.js';
import { TeamPath } from '../team-path.js';

export class ImagePolicyPath {
  @Uuid({ description: 'Id of the image policy.' })
  id!: string;
}

export class NewImageObject {
  @Text({ max: 100, example: 'nginx' })
  name!: string;

  @Text(imageReference)
  reference!: string;
}

export class ImageObject extends NewImageObject {
  @Uuid()
  id!: string;
}

const policyName = { max: 100, description: 'Name of the policy, which others may have too.' };

export class CreateImagePolicy {
  @Text({ ...policyName, example: 'approved' })
  name!: string;

  @Text({ min: 0, max: 1000, multiline: true, optional: true })
  description?: string;

  @ListOf(() => NewImageObject, {
    max: 1000,
    optional: true,
    description: 'Images that a team with this policy may run.',
  })
  objects?: NewImageObject[];
}

export class UpdateImagePolicyBody {
  @Text({ ...policyName, optional: true })
  name?: string;

  @Text({ min: 0, max: 1000, multiline: true, optional: true })
  description?: string;

  @ListOf(() => NewImageObject, {
    max: 1000,
    optional: true,
    description: 'Images that replace all those of the policy.',
  })
  objects?: NewImageObject[];
}

export class UpdateImagePolicy extends IntersectionType(ImagePolicyPath, UpdateImagePolicyBody) {}

export class ImagePolicy {
  @Uuid()
  id!: string;

  @Text(policyName)
  name!: string;

  @Text({ min: 0, max: 1000, multiline: true })
  description!: string;

  @Flag({ description: 'Whether this is the default policy, which allows every image and has no objects.' })
  is_default!: boolean;

  @ListOf(() => ImageObject, { max: 1000 })
  objects!: ImageObject[];

  @Instant()
  created_at!: string;
}

export class ImagePolicyPage extends PageOf(() => ImagePolicy) {}

export class AssignPolicyBody extends TeamPath {}

export class AssignPolicy extends IntersectionType(ImagePolicyPath, TeamPath) {}

export class ListTeamImages extends IntersectionType(TeamPath, PageFromOneOrAll) {}

export class TeamImages extends ListOrPageOf(() => ImageObject, { max: 1000 }) {}

export class CheckImage extends TeamPath {
  @Text(imageReference)
  image!: string;
}

export class ImageVerdict {
  @Flag()
  allowed!: boolean;

  @Text({ max: 512, description: 'The one spelling of the image, with registry and tag or digest.' })
  reference!: string;
}

export const imagePolicies = contract('teams.image_policies', {
  create: operation(CreateImagePolicy, ImagePolicy),
  list: operation(PageFromOne, ImagePolicyPage),
  get: operation(ImagePolicyPath, ImagePolicy),
  update: operation(UpdateImagePolicy, ImagePolicy),
  delete: operation(ImagePolicyPath, Nothing),
  assign: operation(AssignPolicy, ImagePolicy),
  teamImages: operation(ListTeamImages, TeamImages),
  /** Asked by the pods service before it starts an image. */
  check: operation(CheckImage, ImageVerdict),
});
