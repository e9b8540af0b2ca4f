import { Body, Controller, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { type CallContext } from '@atoll/contracts';
import {
  ListAllSubscriptions,
  ListSubscriptions,
  ResizeBody,
  Subscribe,
  Subscription,
  SubscriptionList,
  SubscriptionPage,
  SubscriptionPath,
  Unsubscribe,
  ReadUtilizationQuery,
  SubscriptionUtilization,
  subscriptions,
  utilizationPoints,
} from '@atoll/contracts/gpuaas';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersAllOrPage, AnswersPage, Refuses } from '../answers/answers.js';
import { LargeAnswers, type PassedOn } from '../answers/large-answers.js';
import { ConfigureRoute } from '../http/route-config.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Pool subscriptions')
@Controller('gpuaas')
export class PoolSubscriptionsController {
  constructor(
    private readonly rpc: Rpc,
    private readonly answers: LargeAnswers,
  ) {}

  @Post('pool/subscribe')
  @Answers(
    202,
    Subscription,
    'Subscribe to a GPU pool',
    'Reserves vGPUs of a pool for a team, or refuses with what would fit. Requires team_owner, team_admin or member.',
  )
  @Refuses('insufficient_capacity')
  subscribeToPool(@Body() body: Subscribe, @Context() context: CallContext): Promise<Subscription> {
    return this.rpc.call(subscriptions.subscribe, body, context);
  }

  @Put('pool-subscription/:subscription_id')
  @Answers(
    202,
    Subscription,
    'Resize a subscription',
    'Changes the number of vGPUs. Added vGPUs take effect and are billed once the nodes have confirmed them: see `resize`. Fewer take effect at ' +
      'once; a suspended team may ask for fewer, as it may unsubscribe. Requires team_owner, team_admin or member.',
  )
  @Refuses('insufficient_capacity')
  resizeSubscription(
    @Param() path: SubscriptionPath,
    @Body() body: ResizeBody,
    @Context() context: CallContext,
  ): Promise<Subscription> {
    return this.rpc.call(subscriptions.resize, { ...path, ...body }, context);
  }

  @Post('pool/unsubscribe')
  @Answers(
    200,
    Subscription,
    'Unsubscribe from a GPU pool',
    'Ends a subscription; `force` stops the workloads that run on it. May be repeated. Requires team_owner, team_admin or member.',
  )
  unsubscribeFromPool(@Body() body: Unsubscribe, @Context() context: CallContext): Promise<Subscription> {
    return this.rpc.call(subscriptions.unsubscribe, body, context);
  }

  @Get('pool-subscriptions/all')
  @AnswersPage(
    SubscriptionPage,
    1,
    'List the subscriptions of all teams',
    'Returns subscriptions with their metrics. Requires platform_admin.',
  )
  listAllSubscriptions(
    @Query() query: ListAllSubscriptions,
    @Context() context: CallContext,
  ): Promise<SubscriptionPage> {
    return this.rpc.call(subscriptions.listAll, query, context);
  }

  @Get('pool-subscription')
  @ConfigureRoute({ deadlineMs: 20_000 })
  @AnswersAllOrPage(
    SubscriptionList,
    'List the subscriptions of a team',
    'Returns the subscriptions of a team with their metrics: those that have not ended or, with `include_ended` or `subscription_id`, all; ' +
      'in one response unless `limit` is sent. Any member of the team may read them.',
  )
  listTeamSubscriptions(
    @Query() query: ListSubscriptions,
    @Context() context: CallContext,
  ): Promise<SubscriptionList | PassedOn> {
    return this.answers.allOrPage(subscriptions.list, query, context);
  }

  @Get('pool-subscription/:subscription_id/utilization')
  @Answers(
    200,
    SubscriptionUtilization,
    'Get the utilization of a subscription',
    `Returns how the GPUs of a subscription were used, in ${utilizationPoints} parts of the window. Where metrics cannot be read the figures ` +
      'are null. Any member of its team may read it.',
  )
  getSubscriptionUtilization(
    @Param() path: SubscriptionPath,
    @Query() query: ReadUtilizationQuery,
    @Context() context: CallContext,
  ): Promise<SubscriptionUtilization> {
    return this.rpc.call(subscriptions.utilization, { ...path, ...query }, context);
  }
}
