import { Module, type DynamicModule } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { NatsLink, Rpc } from '@atoll/rpc';
import { LargeAnswers } from './answers/large-answers.js';
import { UnreadAnswers, UnreadLimits } from './answers/unread-answers.js';
import { Authenticator } from './authentication/authenticator.js';
import { Attempts } from './authentication/attempts.js';
import { DenyByDefault } from './authentication/deny-by-default.js';
import { SessionTokens } from './authentication/session-tokens.js';
import { ProblemFilter } from './errors/problem-filter.js';
import { GatewaySettings, type GatewayOptions, type LimitStore } from './gateway-options.js';
import { Answered } from './health/answered.js';
import { Draining } from './health/draining.js';
import { HealthController } from './health/health.controller.js';
import { PepperCheck } from './health/pepper-check.js';
import { ConnectionLimits, OpenConnections } from './http/open-connections.js';
import { ErrorsController } from './openapi/errors.controller.js';
import type { Buckets } from './rate-limits/buckets.js';
import { policiesOf } from './rate-limits/limits.js';
import { MemoryBuckets } from './rate-limits/memory-buckets.js';
import { NatsBuckets } from './rate-limits/nats-buckets.js';
import { NatsClock } from './rate-limits/nats-clock.js';
import { RateLimits, throttlersOf } from './rate-limits/rate-limits.js';
import { ThrottlerModule } from './rate-limits/throttler.js';
import { Admission } from './requests/admission.js';
import { directRpc, FairRpc } from './requests/fair-rpc.js';
import { ReadRequest } from './requests/read-request.js';
import { BaremetalController } from './routes/baremetal.controller.js';
import { BaremetalNodesController } from './routes/baremetal-nodes.controller.js';
import { BillingController } from './routes/billing.controller.js';
import { ClustersController } from './routes/clusters.controller.js';
import { ConnectionsController } from './routes/connections.controller.js';
import { ExposedServicesController } from './routes/exposed-services.controller.js';
import { GpuNodesController } from './routes/gpu-nodes.controller.js';
import { ImagePoliciesController } from './routes/image-policies.controller.js';
import { InstancesController } from './routes/instances.controller.js';
import { InvitationsController } from './routes/invitations.controller.js';
import { MembersController } from './routes/members.controller.js';
import { OperatorController } from './routes/operator.controller.js';
import { PodLogsController } from './routes/pod-logs.controller.js';
import { PodLimitsController } from './routes/pod-limits.controller.js';
import { PodsController } from './routes/pods.controller.js';
import { PoolSubscriptionsController } from './routes/pool-subscriptions.controller.js';
import { PoolsController } from './routes/pools.controller.js';
import { PricesController } from './routes/prices.controller.js';
import { RegionsController } from './routes/regions.controller.js';
import { SecondFactorsController } from './routes/second-factors.controller.js';
import { SessionsController } from './routes/sessions.controller.js';
import { SsoController } from './routes/sso.controller.js';
import { SharedVolumesController } from './routes/shared-volumes.controller.js';
import { SshKeysController } from './routes/ssh-keys.controller.js';
import { TeamsController } from './routes/teams.controller.js';
import { UsageEventsController } from './routes/usage-events.controller.js';
import { UsersController } from './routes/users.controller.js';
import { VmsController } from './routes/vms.controller.js';
import { WorkloadsController } from './routes/workloads.controller.js';
import { WorkspacesController } from './routes/workspaces.controller.js';
import { SessionCookie } from './sessions/session-cookie.js';
import { SsoCookie } from './sessions/sso-cookie.js';

/** The way to other services by a name of its own, so that the gateway can put another before it. */
@Module({ providers: [{ provide: directRpc, useExisting: Rpc }], exports: [directRpc] })
class DirectRpcModule {}

@Module({})
export class GatewayModule {
  static register(options: GatewayOptions): DynamicModule {
    const settings = new GatewaySettings(options);
    const store = options.limitStore ?? 'memory';
    return {
      module: GatewayModule,
      imports: [
        { module: DirectRpcModule, imports: [options.rpc] },
        ThrottlerModule.forRootAsync({
          inject: [{ token: NatsLink, optional: true }],
          useFactory: (link?: NatsLink) => ({
            throttlers: throttlersOf(settings.limits),
            storage: openBuckets(settings, store, link),
          }),
        }),
      ],
      controllers: [
        TeamsController,
        MembersController,
        InvitationsController,
        WorkspacesController,
        ImagePoliciesController,
        UsersController,
        SessionsController,
        SecondFactorsController,
        SsoController,
        BillingController,
        PricesController,
        UsageEventsController,
        RegionsController,
        ClustersController,
        BaremetalNodesController,
        BaremetalController,
        GpuNodesController,
        PoolsController,
        PoolSubscriptionsController,
        VmsController,
        WorkloadsController,
        ConnectionsController,
        ExposedServicesController,
        InstancesController,
        PodLogsController,
        PodLimitsController,
        PodsController,
        SharedVolumesController,
        SshKeysController,
        OperatorController,
        ErrorsController,
        HealthController,
      ],
      providers: [
        { provide: GatewaySettings, useValue: settings },
        { provide: FairRpc, inject: [directRpc], useFactory: (direct: Rpc) => new FairRpc(direct, settings) },
        { provide: Rpc, useExisting: FairRpc },
        // In this order.
        { provide: APP_GUARD, useClass: DenyByDefault },
        { provide: APP_GUARD, useClass: ReadRequest },
        Admission,
        Answered,
        Attempts,
        Authenticator,
        Draining,
        ConnectionLimits,
        LargeAnswers,
        OpenConnections,
        PepperCheck,
        ProblemFilter,
        RateLimits,
        UnreadAnswers,
        UnreadLimits,
        SessionCookie,
        SessionTokens,
        SsoCookie,
      ],
    };
  }
}

function openBuckets({ now, limits }: GatewaySettings, store: LimitStore, link: NatsLink | undefined): Buckets {
  const local = new MemoryBuckets(now);
  if (store === 'memory') return local;
  if (!link) throw new Error('Rate limits can be shared over NATS only where the bus is NATS.');
  const refills = limits ? Object.values(policiesOf(limits)).map(({ refillMs }) => refillMs) : [0];
  const clock = new NatsClock(() => performance.now());
  return new NatsBuckets({
    connection: () => link.connection,
    local,
    now: (kv) => clock.now(kv),
    longestRefillMs: Math.max(...refills),
  });
}
