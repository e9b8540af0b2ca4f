import { Gauge, type Registry } from 'prom-client';
import type { RunningService } from './start-service.js';

/** Adds what an operator watches of the events of these services. Collected when the metrics are read. */
export function observeEvents(metrics: Registry, services: readonly RunningService[]): void {
  const add = (name: string, help: string, count: (service: RunningService) => Promise<number | undefined>) =>
    new Gauge({
      name,
      help,
      labelNames: ['service'],
      registers: [metrics],
      async collect() {
        for (const service of services) {
          // A database that does not answer shows in readiness; the other figures are shown all the same.
          const value = await count(service).catch(() => undefined);
          if (value === undefined) this.remove(service.name);
          else this.set({ service: service.name }, value);
        }
      },
    });
  add('atoll_outbox_pending', 'Events that are committed and not yet on their way.', ({ outbox }) => outbox.pending());
  add('atoll_dead_letters', 'Events that could not be handled.', ({ deadLetters }) => deadLetters.count());
  add(
    'atoll_events_missing',
    'Events that were published and that a consumer of this service does not have.',
    ({ events }) => Promise.resolve(events.missing()),
  );
  add('atoll_event_stream_bytes', 'Size of the event stream of JetStream.', ({ events }) =>
    Promise.resolve(events.streamUsage()?.bytes),
  );
  add(
    'atoll_event_stream_limit_bytes',
    'Size at which the event stream of JetStream rejects further events.',
    ({ events }) => Promise.resolve(events.streamUsage()?.maxBytes),
  );
}
