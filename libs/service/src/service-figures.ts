import type { INestMicroservice } from '@nestjs/common';
import { Gauge, type Registry } from 'prom-client';
import type { RunningService } from './start-service.js';

/**
 * What an operator watches of one service. Read from its database when the metrics are, so every replica shows the
 * same.
 */
export interface ServiceFigure {
  /** `atoll_` and the rest. */
  readonly name: string;
  readonly help: string;
  /** A label, and a series for each of its values; a value that `read` does not name is 0. */
  readonly label: string;
  readonly values: readonly string[];
  readonly read: (app: INestMicroservice) => Promise<Readonly<Record<string, number>>>;
}

/**
 * Adds the figures of a service, labelled with its name. While its database does not answer they are not shown;
 * readiness says so.
 */
export function observeFigures(
  metrics: Registry,
  { name: service, app }: RunningService,
  figures: readonly ServiceFigure[] = [],
): void {
  for (const { name, help, label, values, read } of figures) {
    new Gauge({
      name,
      help,
      labelNames: ['service', label],
      registers: [metrics],
      async collect() {
        this.reset();
        const found = await read(app).catch(() => undefined);
        if (found) for (const value of values) this.set({ service, [label]: value }, found[value] ?? 0);
      },
    });
  }
}
