import type { ConnectionPod } from '@atoll/contracts';
import { Injectable } from '@nestjs/common';

/** Where it is known how pods are reached: the service that runs them. */
export abstract class ConnectionSource {
  /** The pods of each of these subscriptions; one without is left out. Throws where it cannot be found out, and when the signal is aborted. */
  abstract read(teamId: string, subscriptionIds: readonly string[], signal: AbortSignal): Promise<Map<string, ConnectionPod[]>>;
}

/** A platform on which no service runs pods: there are none to be reached. */
@Injectable()
export class NoPods extends ConnectionSource {
  read(): Promise<Map<string, ConnectionPod[]>> {
    return Promise.resolve(new Map<string, ConnectionPod[]>());
  }
}
