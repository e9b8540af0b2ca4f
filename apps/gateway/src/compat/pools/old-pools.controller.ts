import { Body, Controller, Get, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { notFound, TeamPath, type CallContext } from '@atoll/contracts';
import { currencies } from '@atoll/contracts/billing';
import { pools, regions, type AvailablePool, type OfferedProfile } from '@atoll/contracts/gpuaas';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Context } from '../../requests/call-context.js';
import { exactNumber, nanoOf, zero } from '../http/exact.js';
import { countryCodeOf } from '../http/country-codes.js';
import { OldAnswers } from '../http/old-answers.js';
import { allOf } from '../http/old-pages.js';
import { OldPool, OldPoolPlace, OldPoolsQuery, OldRegion, PoolEstimate, PoolQuestion } from './old-pools.js';

const perUnit = 1_000_000_000n;

/** What can be subscribed to, and what it costs. */
@ApiTags('GPU pools')
@Controller('gpuaas')
export class OldPoolsController {
  constructor(private readonly rpc: Rpc) {}

  @Get('available-regions')
  @OldAnswers(
    [OldRegion],
    'List the regions that offer pools',
    'Returns a row for each GPU service. Any member of the team may read them.',
  )
  async listAvailableRegions(@Query() query: TeamPath, @Context() context: CallContext): Promise<OldRegion[]> {
    const found = await allOf(
      (page, limit) => this.rpc.call(pools.availableRegions, { ...query, page: page + 1, limit }, context),
      ({ region_id }) => region_id,
    );
    return found.flatMap(({ region_id, region_name, city, country, gpuaas_ids }) =>
      gpuaas_ids.map((id) => ({
        id: Number(region_id),
        region_name,
        city: city ?? '',
        country: country ?? '',
        gpuaas_id: Number(id),
      })),
    );
  }

  @Get('available-pools')
  @OldAnswers(
    [OldPool],
    'List the pools that a team can subscribe to',
    'Of several profiles of a pool the smallest is shown. Any member may read them.',
  )
  async listAvailablePools(@Query() query: OldPoolsQuery, @Context() context: CallContext): Promise<OldPool[]> {
    const offers = await allOf(
      (page, limit) => this.rpc.call(pools.available, { ...query, page: page + 1, limit }, context),
      ({ pool_id }) => pool_id,
    );
    return offers.map((pool) => {
      const profile = smallestOf(pool);
      return {
        id: Number(pool.pool_id),
        pool_name: pool.pool_name,
        gpu_model_type: pool.board,
        available_vgpus: profile?.available_vgpus ?? 0,
        pricing_hourly: profile?.unit_price ?? null,
      };
    });
  }

  @Get('all-pools')
  @OldAnswers([OldPoolPlace], 'List all pools', 'Requires platform_admin.')
  async listAllPools(@Context() context: CallContext): Promise<OldPoolPlace[]> {
    const [all, places] = await Promise.all([
      allOf(
        (page, limit) => this.rpc.call(pools.list, { page: page + 1, limit }, context),
        ({ pool_id }) => pool_id,
      ),
      allOf(
        (page, limit) => this.rpc.call(regions.list, { page: page + 1, limit }, context),
        ({ region_id }) => region_id,
      ),
    ]);
    const regionOf = new Map(places.map((region) => [region.region_id, region]));
    return all.map(({ pool_id, pool_name, gpuaas_id, region_id }) => {
      const region = regionOf.get(region_id);
      return {
        pool_id: Number(pool_id),
        pool_name,
        gpuaas_id: Number(gpuaas_id),
        cluster_id: Number(gpuaas_id),
        region_id: Number(region_id),
        region_name: region?.region_name ?? '',
        city: region?.city ?? '',
        country_code: countryCodeOf(region?.country ?? null),
      };
    });
  }

  @Post('calculate-pool-subscription')
  @OldAnswers(
    PoolEstimate,
    'Estimate the cost of a subscription',
    'By the price of the team, else the general one; 422 without any. Any member may ask.',
  )
  async estimate(@Body() asked: PoolQuestion, @Context() context: CallContext): Promise<PoolEstimate> {
    const { team_id, pool_id } = asked;
    const [offers, { currency }] = await Promise.all([
      this.rpc.call(pools.available, { team_id, pool_id }, context),
      this.rpc.call(currencies.read, {}, context),
    ]);
    const [pool] = offers.data;
    if (!pool) throw notFound('pool');
    const price = smallestOf(pool)?.unit_price ?? null;
    if (price === null)
      throw new AppError('not_supported', `The pool ${pool.pool_name} has no price. Ask the operator to set one.`);
    const hourlyNano = nanoOf(price) * BigInt(asked.vgpus);
    const exact = hourlyNano * nanoOf(asked.duration_hours);
    const total = exactNumber((2n * exact + perUnit) / (2n * perUnit));
    return {
      total_cost: total,
      hourly_cost: exactNumber(hourlyNano),
      currency,
      breakdown: { gpu_cost: total, storage_cost: zero },
    };
  }
}

function smallestOf({ profiles }: AvailablePool): OfferedProfile | undefined {
  return profiles.toSorted((one, other) => one.v_ram_gb - other.v_ram_gb)[0];
}
