import { Body, Controller, Get, Param, Post, Put, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
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
  subscriptions,
  type CallContext,
} from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import { Answers, AnswersAllOrPage, AnswersPage, Refuses } from '../answers/answers.js';
import { Context } from '../requests/call-context.js';

@ApiTags('Pool subscriptions')
@Controller('gpuaas')
export class PoolSubscriptionsController {
  constructor(private readonly rpc: Rpc) {}

  @Post('pool/subscribe')
  @Answers(202, Subscription, 'Reserves vGPUs of a pool for a team, or refuses. For a team_owner, team_admin or member.')
  @Refuses('insufficient_capacity')
  subscribe(@Body() body: Subscribe, @Context() context: CallContext): Promise<Subscription> {
    return this.rpc.call(subscriptions.subscribe, body, context);
  }

  @Put('pool-subscription/:subscription_id')
  @Answers(200, Subscription, 'Changes how many vGPUs a subscription has. For a team_owner, team_admin or member.')
  @Refuses('insufficient_capacity')
  resize(@Param() path: SubscriptionPath, @Body() body: ResizeBody, @Context() context: CallContext): Promise<Subscription> {
    return this.rpc.call(subscriptions.resize, { ...path, ...body }, context);
  }

  @Post('pool/unsubscribe')
  @Answers(
    200,
    Subscription,
    'Ends a subscription; with `force` also where workloads run on it. May be repeated. For a team_owner, team_admin or member.',
  )
  unsubscribe(@Body() body: Unsubscribe, @Context() context: CallContext): Promise<Subscription> {
    return this.rpc.call(subscriptions.unsubscribe, body, context);
  }

  @Get('pool-subscriptions/all')
  @AnswersPage(SubscriptionPage, 1, 'Lists the subscriptions of all teams, with metrics. For a platform_admin.')
  listAll(@Query() query: ListAllSubscriptions, @Context() context: CallContext): Promise<SubscriptionPage> {
    return this.rpc.call(subscriptions.listAll, query, context);
  }

  @Get('pool-subscription')
  @AnswersAllOrPage(
    SubscriptionList,
    'Lists the subscriptions of a team, with metrics: all of them unless `limit` is sent. For every member of the team.',
  )
  list(@Query() query: ListSubscriptions, @Context() context: CallContext): Promise<SubscriptionList> {
    return this.rpc.call(subscriptions.list, query, context);
  }
}
