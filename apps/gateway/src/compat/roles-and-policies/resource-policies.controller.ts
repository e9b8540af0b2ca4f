import { Body, Controller, Get, Logger, Param, Post, Put } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, notFound, requirePlatformAdmin, type CallContext } from '@atoll/contracts';
import { regions, type Region } from '@atoll/contracts/gpuaas';
import { teams } from '@atoll/contracts/teams';
import { Rpc } from '@atoll/rpc';
import { Context } from '../../requests/call-context.js';
import { countryCodeOf } from '../http/country-codes.js';
import { OldAnswers } from '../http/old-answers.js';
import { allOf } from '../http/old-pages.js';
import { namesOfTeams } from './team-names.js';
import { AssignedPolicy, emptyPolicy, NamedOne, PolicyPath, ResourcePolicy, type RegionAccess } from './policies.js';

/** The policy has no history; clients want an instant. */
const since = '2020-01-01T00:00:00.000Z';

/** The one resource policy: every team may use every region. */
@ApiTags('Roles and policies')
@Controller('resource-policy')
export class ResourcePoliciesController {
  private readonly logger = new Logger(ResourcePoliciesController.name);
  private isLogged = false;

  constructor(private readonly rpc: Rpc) {}

  @Get()
  @OldAnswers([NamedOne], 'List the resource policies', 'Returns the one resource policy, which limits nothing.')
  listResourcePolicies(): NamedOne[] {
    return [emptyPolicy('resource')];
  }

  @Get(':id')
  @OldAnswers(ResourcePolicy, 'Get the resource policy', 'Returns all regions and all teams. Requires platform_admin.')
  async getResourcePolicy(@Param() path: PolicyPath, @Context() context: CallContext): Promise<ResourcePolicy> {
    requireResourcePolicy(path.id, context);
    const [all, named] = await Promise.all([
      allOf(
        (page, limit) => this.rpc.call(regions.list, { page: page + 1, limit }, context),
        ({ region_id }) => region_id,
      ),
      namesOfTeams(this.rpc, context),
    ]);
    return {
      ...emptyPolicy('resource'),
      is_system_defined: true,
      is_default: true,
      globals: [],
      regions: all.map(accessTo),
      teams: named.map(({ id, name }) => ({ id, name })),
      created_at: since,
      updated_at: since,
    };
  }

  @Put(':id')
  @OldAnswers(
    Nothing,
    'Change the resource policy',
    'Changes nothing: every team may use every region. Requires platform_admin.',
  )
  changeResourcePolicy(@Param() path: PolicyPath, @Context() context: CallContext): Nothing {
    requireResourcePolicy(path.id, context);
    if (!this.isLogged)
      this.logger.warn(
        'Ignored a change of the resource policy through the compatibility mount; every team may use every region',
      );
    this.isLogged = true;
    return {};
  }

  @Post('assign-team')
  @OldAnswers(
    Nothing,
    'Assign the resource policy',
    'Changes nothing: every team has the one resource policy. Requires platform_admin.',
  )
  async assignResourcePolicy(@Body() body: AssignedPolicy, @Context() context: CallContext): Promise<Nothing> {
    requireResourcePolicy(body.policy_id, context);
    await this.rpc.call(teams.get, { team_id: body.team_id }, context);
    return {};
  }
}

function requireResourcePolicy(id: string, { caller }: CallContext): void {
  requirePlatformAdmin(caller);
  if (id !== emptyPolicy('resource').id) throw notFound('resource policy');
}

function accessTo({ region_id, region_name, city, country }: Region): RegionAccess {
  const id = Number(region_id);
  const place = { city: city ?? '', country: country ?? '', country_code: countryCodeOf(country) };
  return {
    region_id: id,
    region_name,
    access: 'unlimited',
    region_details: { id, region_name, address: '', ...place },
  };
}
