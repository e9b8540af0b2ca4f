import { Gauge, type Registry } from 'prom-client';
import type { RunningService } from './start-service.js';

/** Adds what an operator watches of the events of these services: how many wait to be sent, and how many failed for good. Counted when somebody looks. */
export function observeEvents(metrics: Registry, services: readonly RunningService[]): void {
  const add = (name: string, help: string, count: (service: RunningService) => Promise<number>) =>
    new Gauge({
      name,
      help,
      labelNames: ['service'],
      registers: [metrics],
      async collect() {
        for (const service of services) {
          // A database that does not answer shows in readiness; the other figures are shown all the same.
          const value = await count(service).catch(() => null);
          if (value === null) this.remove(service.name);
          else this.set({ service: service.name }, value);
        }
      },
    });
  add('atoll_outbox_pending', 'Events that are committed and not yet on their way.', ({ outbox }) => outbox.pending());
  add('atoll_dead_letters', 'Events whose effect failed for good.', ({ deadLetters }) => deadLetters.count());
}
