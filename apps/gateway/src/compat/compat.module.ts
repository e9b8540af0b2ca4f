import { Module, type DynamicModule } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { Rpc } from '@atoll/rpc';
import { DenyByDefault } from '../authentication/deny-by-default.js';
import { GatewaySettings } from '../gateway-options.js';
import { Draining } from '../health/draining.js';
import { OldBillsController } from './billing/old-bills.controller.js';
import { OldPoolBillsController } from './billing/old-pool-bills.controller.js';
import { OldUsageController } from './billing/old-usage.controller.js';
import { OldErrorFilter } from './http/old-error.js';
import { ReadOldRequest } from './http/read-old-request.js';
import { OldPodsController } from './pods/old-pods.controller.js';
import { UnifiedController } from './pods/unified.controller.js';
import { OldConnectionsController } from './pools/old-connections.controller.js';
import { OldPoolsController } from './pools/old-pools.controller.js';
import { OldSubscriptionsController } from './pools/old-subscriptions.controller.js';
import { PoliciesController } from './roles-and-policies/policies.controller.js';
import { ResourcePoliciesController } from './roles-and-policies/resource-policies.controller.js';
import { OldMembersController } from './teams/old-members.controller.js';
import { OldOnboardingController } from './teams/old-onboarding.controller.js';
import { OldTeamsController } from './teams/old-teams.controller.js';
import { OldVolumesController } from './volumes/old-volumes.controller.js';

/** What the mount takes from the gateway that it belongs to. */
export interface CompatParts {
  settings: GatewaySettings;
  rpc: Rpc;
}

@Module({})
export class CompatModule {
  static register({ settings, rpc }: CompatParts): DynamicModule {
    return {
      module: CompatModule,
      controllers: [
        PoliciesController,
        ResourcePoliciesController,
        OldTeamsController,
        OldMembersController,
        OldOnboardingController,
        OldBillsController,
        OldPoolBillsController,
        OldUsageController,
        OldPoolsController,
        OldSubscriptionsController,
        OldConnectionsController,
        UnifiedController,
        OldPodsController,
        OldVolumesController,
      ],
      providers: [
        { provide: GatewaySettings, useValue: settings },
        { provide: Rpc, useValue: borrowed(rpc) },
        // In this order.
        { provide: APP_GUARD, useClass: DenyByDefault },
        { provide: APP_GUARD, useClass: ReadOldRequest },
        Draining,
        OldErrorFilter,
      ],
    };
  }
}

/** Without the hooks by which Nest would close it: that is left to the gateway. */
function borrowed(rpc: Rpc): Rpc {
  return {
    call: (operation, input, context) => rpc.call(operation, input, context),
    callForJson: (operation, input, context) => rpc.callForJson(operation, input, context),
    publish: (type, payload) => rpc.publish(type, payload),
    listen: (type, listener) => rpc.listen(type, listener),
    status: () => rpc.status(),
  };
}
