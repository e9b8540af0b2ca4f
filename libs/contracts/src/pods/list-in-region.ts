import { IntersectionType } from '@nestjs/swagger';
import { NumberedId, Uuid } from '../id-fields.js';
import { IncludeEnded, PageFromOne } from '../page.js';

class OfTeamInRegion {
  @Uuid({ example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10' })
  team_id!: string;

  @NumberedId({ optional: true, example: '1' })
  region_id?: string;
}

/** What a team has, of one region or of all. */
export class ListInRegion extends IntersectionType(OfTeamInRegion, PageFromOne, IncludeEnded) {}
