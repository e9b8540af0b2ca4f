import { Body, Controller, Get, Param, Post } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Nothing, notFound, requirePlatformAdmin, type CallContext } from '@atoll/contracts';
import { imagePolicies, teams, type ImagePolicy } from '@atoll/contracts/teams';
import { Rpc } from '@atoll/rpc';
import { Context } from '../../requests/call-context.js';
import { OldAnswers } from '../http/old-answers.js';
import { allOf } from '../http/old-pages.js';
import { namesOfTeams } from './team-names.js';
import {
  AssignedTeam,
  DefaultPolicy,
  emptyPolicy,
  emptyPolicyTypes,
  NamedOne,
  OldImagePolicy,
  PolicyPath,
  PricingPolicy,
} from './policies.js';
import { OldRoles, oldRoles } from './roles.js';

@ApiTags('Roles and policies')
@Controller()
export class PoliciesController {
  constructor(private readonly rpc: Rpc) {}

  @Get('roles')
  @OldAnswers(OldRoles, 'List the roles', 'Returns the roles that a member of a team can have.')
  listRoles(): OldRoles {
    return { roles: oldRoles };
  }

  @Get('policy/defaults')
  @OldAnswers(
    [DefaultPolicy],
    'List the default policies',
    'Returns the policies that a new team has. Requires platform_admin.',
  )
  async listDefaultPolicies(@Context() context: CallContext): Promise<DefaultPolicy[]> {
    const image = (await this.imagePolicies(context)).find(({ is_default }) => is_default);
    const empty = emptyPolicyTypes.map((type) => ({ type, ...emptyPolicy(type) }));
    return image ? [...empty, { type: 'image', id: image.id, name: image.name }] : empty;
  }

  @Get('pricing-policy')
  @OldAnswers(
    [PricingPolicy],
    'List the pricing policies',
    'Returns the one pricing policy. Prices are set on the main API.',
  )
  listPricingPolicies(): PricingPolicy[] {
    return [{ policy: emptyPolicy('pricing') }];
  }

  @Get('policy/service')
  @OldAnswers([NamedOne], 'List the service policies', 'Returns the one service policy, which holds nothing.')
  listServicePolicies(): NamedOne[] {
    return [emptyPolicy('service')];
  }

  @Get('policy/instance-type')
  @OldAnswers(
    [NamedOne],
    'List the instance type policies',
    'Returns the one instance type policy, which holds nothing.',
  )
  listInstanceTypePolicies(): NamedOne[] {
    return [emptyPolicy('instance-type')];
  }

  @Get('policy/image')
  @OldAnswers(
    [OldImagePolicy],
    'List the image policies',
    'Returns all image policies with their images and teams. Requires platform_admin.',
  )
  async listImagePolicies(@Context() context: CallContext): Promise<OldImagePolicy[]> {
    const [policies, named] = await Promise.all([this.imagePolicies(context), namesOfTeams(this.rpc, context)]);
    const teamsOf = Map.groupBy(named, ({ policy_id }) => policy_id);
    return policies.map(({ id, name, description, is_default, objects }) => ({
      id,
      name,
      description,
      is_default,
      is_system_defined: is_default,
      type: 'image',
      objects: objects.map((object) => ({ id: object.id, name: object.name, description: object.reference })),
      teams: (teamsOf.get(id) ?? []).map((team) => ({ id: team.id, name: team.name })),
    }));
  }

  @Post('pricing-policy/:id/assign-team')
  @OldAnswers(
    Nothing,
    'Assign the pricing policy',
    'Changes nothing: every team has the one pricing policy. Requires platform_admin.',
  )
  async assignPricingPolicy(
    @Param() { id }: PolicyPath,
    @Body() team: AssignedTeam,
    @Context() context: CallContext,
  ): Promise<Nothing> {
    requirePlatformAdmin(context.caller);
    if (id !== emptyPolicy('pricing').id) throw notFound('pricing policy');
    await this.rpc.call(teams.get, { team_id: team.team_id }, context);
    return {};
  }

  private imagePolicies(context: CallContext): Promise<ImagePolicy[]> {
    return allOf(
      (page, limit) => this.rpc.call(imagePolicies.list, { page: page + 1, limit }, context),
      ({ id }) => id,
    );
  }
}
