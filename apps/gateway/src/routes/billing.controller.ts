import { Controller, Get, Param, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import {
  BillingReport,
  ComparisonPath,
  ComparisonQuery,
  ComparisonReport,
  ComparisonZone,
  PoolsReport,
  RegionalBillingQuery,
  StorageReport,
  TeamBillingQuery,
  WorkspaceBillingQuery,
  WorkspacesReport,
  billingReports,
} from '@atoll/contracts/billing';
import { AnswersJson } from '../answers/answers.js';
import { LargeAnswers, type PassedOn } from '../answers/large-answers.js';
import { Context } from '../requests/call-context.js';

const range = ':start_date/:end_date/:interval';
const zoned = (path: string): string[] => [path, `${path}/:timezone`];

const comparison = 'team-billing/monthly-comparison/:team_id/:start_month/:end_month';
const compared = {
  summary: 'Compare two months of a team',
  description:
    'Returns the change in cost between two months, split into the effect of price and of quantity. Requires team_owner, team_admin or billing_viewer.',
};

/** Reports may have thousands of intervals: they are passed on as they come. */
@ApiTags('Billing')
@Controller()
export class BillingController {
  constructor(private readonly answers: LargeAnswers) {}

  @Get(zoned(`team-billing/:team_id/${range}`))
  @AnswersJson(
    BillingReport,
    'Get the bill of a team',
    'Returns the usage and cost of the team, by interval. Requires team_owner, team_admin or billing_viewer.',
  )
  getTeamBilling(@Param() query: TeamBillingQuery, @Context() context: CallContext): Promise<PassedOn> {
    return this.answers.passOn(billingReports.team, query, context);
  }

  @Get(zoned(`workspace-billing/:workspace_id/${range}`))
  @AnswersJson(
    BillingReport,
    'Get the bill of a workspace',
    'Returns the usage and cost of the workspace, by interval. Requires team_owner, team_admin or billing_viewer.',
  )
  getWorkspaceBilling(@Param() query: WorkspaceBillingQuery, @Context() context: CallContext): Promise<PassedOn> {
    return this.answers.passOn(billingReports.workspace, query, context);
  }

  @Get(zoned(`team-billing/group-by-workspace/:team_id/${range}`))
  @AnswersJson(
    WorkspacesReport,
    'Get the bill of a team by workspace',
    'Returns the usage and cost of the team, by workspace and interval. Requires team_owner, team_admin or billing_viewer.',
  )
  getTeamBillingByWorkspace(@Param() query: TeamBillingQuery, @Context() context: CallContext): Promise<PassedOn> {
    return this.answers.passOn(billingReports.byWorkspace, query, context);
  }

  @Get(zoned(`team-billing/gpuaas-pool/:team_id/${range}/:region_id`))
  @AnswersJson(
    PoolsReport,
    'Get the bill of a team by GPU pool',
    'Returns the usage and cost of GPU pools of the team, by pool and interval. Requires team_owner, team_admin or billing_viewer.',
  )
  getTeamPoolBilling(@Param() query: RegionalBillingQuery, @Context() context: CallContext): Promise<PassedOn> {
    return this.answers.passOn(billingReports.pools, query, context);
  }

  @Get(zoned(`team-billing/shared-storage/:team_id/${range}/:region_id`))
  @AnswersJson(
    StorageReport,
    'Get the bill of a team by storage volume',
    'Returns the usage and cost of shared storage of the team, by volume and interval. Requires team_owner, team_admin or billing_viewer.',
  )
  getTeamStorageBilling(@Param() query: RegionalBillingQuery, @Context() context: CallContext): Promise<PassedOn> {
    return this.answers.passOn(billingReports.storage, query, context);
  }

  @Get(comparison)
  @AnswersJson(ComparisonReport, compared.summary, compared.description)
  compareTeamMonths(
    @Param() path: ComparisonPath,
    @Query() zone: ComparisonZone,
    @Context() context: CallContext,
  ): Promise<PassedOn> {
    return this.answers.passOn(billingReports.comparison, { ...path, ...zone }, context);
  }

  /** All billing paths take the zone as their last segment. */
  @Get(`${comparison}/:timezone`)
  @AnswersJson(ComparisonReport, compared.summary, compared.description)
  compareTeamMonthsInZone(@Param() query: ComparisonQuery, @Context() context: CallContext): Promise<PassedOn> {
    return this.answers.passOn(billingReports.comparison, query, context);
  }
}
