import { Uuid } from './id-fields.js';

export class TeamPath {
  @Uuid({ example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10' })
  team_id!: string;
}
