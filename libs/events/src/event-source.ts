import { eventLog, type EventsAfter, type EventsPage } from '@atoll/contracts';
import { systemContext, type Rpc } from '@atoll/rpc';

/** Where events are asked for that the broker has lost. */
export interface EventSource {
  /** Throws AppError `unavailable` where the publisher is away, or of a release that cannot be asked. */
  read(publisher: string, asked: EventsAfter): Promise<EventsPage>;
}

const deadlineMs = 5_000;

/** Asks the publisher itself, by a call. */
export function askPublisher(rpc: Rpc, service: string): EventSource {
  return {
    read: (publisher, asked) => rpc.call(eventLog(publisher).read, asked, systemContext(service, { deadlineMs })),
  };
}
