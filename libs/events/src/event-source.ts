import { eventLog, type EventsAfter, type EventsPage } from '@atoll/contracts';
import { systemContext, type Rpc } from '@atoll/rpc';

/** Where events are asked for that the broker has lost. */
export interface EventSource {
  /** Throws AppError `unavailable` if the publisher does not respond, or is of a release without this operation. */
  read(publisher: string, asked: EventsAfter): Promise<EventsPage>;
}

const deadlineMs = 5_000;

/** Asks the publisher itself, by a call. */
export function askPublisher(rpc: Rpc, service: string): EventSource {
  return {
    read: (publisher, asked) => rpc.call(eventLog(publisher).read, asked, systemContext(service, { deadlineMs })),
  };
}
