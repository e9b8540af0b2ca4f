import { teamsThatAllow, type CallContext } from '@atoll/contracts';
import { type FindPlaces, type Places } from '@atoll/contracts/gpuaas';
import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';

/** The subscriptions `$1`, of the teams `$2` where that is not null. */
const subscriptionsQuery = `SELECT subscription_id::text, pool_id::text, pool_name, board, v_ram_gb::text AS v_ram_gb
  FROM subscription JOIN pool USING (pool_id)
  WHERE subscription_id = ANY ($1::bigint[]) AND ($2::uuid[] IS NULL OR team_id = ANY ($2)) ORDER BY subscription_id`;

const regionsQuery = `SELECT region_id::text, region_name, city, country, created_at FROM region WHERE region_id = ANY ($1::bigint[]) ORDER BY region_id`;

interface RegionRow {
  region_id: string;
  region_name: string;
  city: string | null;
  country: string | null;
  created_at: Date;
}

/** Where many subscriptions are, in two statements. */
@Injectable()
export class PlacesService {
  constructor(private readonly statements: Statements) {}

  async find({ subscription_ids = [], region_ids = [] }: FindPlaces, { caller }: CallContext): Promise<Places> {
    const teamIds = teamsThatAllow(caller, 'readTeam');
    const [subscriptions, regions] = await Promise.all([
      this.statements.query<Places['subscriptions'][number]>(subscriptionsQuery, [subscription_ids, teamIds]),
      this.statements.query<RegionRow>(regionsQuery, [region_ids]),
    ]);
    return {
      subscriptions,
      regions: regions.map((region) => ({ ...region, created_at: region.created_at.toISOString() })),
    };
  }
}
