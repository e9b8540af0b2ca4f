import { allOrPage, notFound, requirePermission, windowIfLimited, type CallContext } from '@atoll/contracts';
import {
  type CheckImage,
  type ImageObject,
  type ImageVerdict,
  type ListTeamImages,
  type TeamImages,
} from '@atoll/contracts/teams';
import { Statements } from '@atoll/database';
import { invalidField } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import { teamImagesQuery, teamPolicyQuery } from './image-policy-query.js';
import { coversImage, normalisedImage, parseImageReference } from './image-reference.js';
import { isAtMetadataService } from './metadata-registry.js';

/** What a team may run, for those in it and for the service that runs it. */
@Injectable()
export class TeamImagesService {
  constructor(private readonly statements: Statements) {}

  /** Everything unless `limit` was sent. The default policy allows every image and so lists none. */
  async list({ team_id, ...asked }: ListTeamImages, { caller }: CallContext): Promise<TeamImages> {
    requirePermission(caller, team_id, 'readTeam');
    const window = windowIfLimited(asked);
    const values = [team_id, window?.limit ?? null, window?.offset ?? 0];
    const [row] = await this.statements.query<{ total: number; data: ImageObject[] }>(teamImagesQuery, values);
    if (!row) throw notFound('team');
    return allOrPage(row.data, window, row.total);
  }

  async check({ team_id, image }: CheckImage, { caller }: CallContext): Promise<ImageVerdict> {
    const asked = parseImageReference(image);
    if (!asked)
      throw invalidField(
        'image',
        'isImageReference',
        'must be an image reference such as docker.io/library/nginx:1.29',
      );
    if (isAtMetadataService(asked))
      throw invalidField('image', 'isRegistry', 'must not name the metadata service of a cloud as its registry');
    requirePermission(caller, team_id, 'readTeam');
    const [policy] = await this.statements.query<{ is_default: boolean; references: string[] }>(teamPolicyQuery, [
      team_id,
    ]);
    if (!policy) throw notFound('team');
    const covers = (reference: string): boolean => {
      const allowed = parseImageReference(reference);
      return allowed !== null && coversImage(allowed, asked);
    };
    return { allowed: policy.is_default || policy.references.some(covers), reference: normalisedImage(asked) };
  }
}
