import { IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Flag, Instant, ListOf, Nested, Text, Uuid } from '../fields.js';
import { Nothing, PageFromOne, PageFromOneOrAll, Pagination } from '../page.js';
import { TeamPath } from './team.js';

const reference = {
  max: 512,
  example: 'docker.io/library/nginx:1.29',
  description: 'An image reference; `nginx` means `docker.io/library/nginx`.',
};

export class ImagePolicyPath {
  @Uuid({ description: 'The policy.' })
  id!: string;
}

export class NewImageObject {
  @Text({ max: 100, example: 'nginx' })
  name!: string;

  @Text(reference)
  reference!: string;
}

export class ImageObject extends NewImageObject {
  @Uuid()
  id!: string;
}

export class CreateImagePolicy {
  @Text({ max: 100, example: 'approved' })
  name!: string;

  @Text({ min: 0, max: 1000, multiline: true, optional: true })
  description?: string;

  @ListOf(() => NewImageObject, { max: 1000, optional: true, description: 'The images a team may run.' })
  objects?: NewImageObject[];
}

export class UpdateImagePolicyBody {
  @Text({ max: 100, optional: true })
  name?: string;

  @Text({ min: 0, max: 1000, multiline: true, optional: true })
  description?: string;

  @ListOf(() => NewImageObject, { max: 1000, optional: true, description: 'Replaces all objects.' })
  objects?: NewImageObject[];
}

export class UpdateImagePolicy extends IntersectionType(ImagePolicyPath, UpdateImagePolicyBody) {}

export class ImagePolicy {
  @Uuid()
  id!: string;

  @Text({ max: 100 })
  name!: string;

  @Text({ min: 0, max: 1000, multiline: true })
  description!: string;

  @Flag({ description: 'The policy of teams that were given no other: it allows every image and has no objects.' })
  is_default!: boolean;

  @ListOf(() => ImageObject, { max: 1000 })
  objects!: ImageObject[];

  @Instant()
  created_at!: string;
}

export class ImagePolicyPage {
  @ListOf(() => ImagePolicy, { max: 100 })
  data!: ImagePolicy[];

  @Nested(() => Pagination)
  pagination!: Pagination;
}

export class AssignPolicyBody extends TeamPath {}

export class AssignPolicy extends IntersectionType(ImagePolicyPath, TeamPath) {}

export class ListTeamImages extends IntersectionType(TeamPath, PageFromOneOrAll) {}

/** Everything unless `limit` was sent; then a page. */
export class TeamImages {
  @ListOf(() => ImageObject, { max: 1000 })
  data!: ImageObject[];

  @Nested(() => Pagination, { optional: true })
  pagination?: Pagination;
}

export class CheckImage extends TeamPath {
  @Text(reference)
  image!: string;
}

export class ImageVerdict {
  @Flag()
  allowed!: boolean;
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
