import { Injectable } from '@nestjs/common';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { subscriptionOf, type EventEffect, type EventSubscription } from './on-event.js';

/** One event as one consumer takes it. */
export interface Effect {
  readonly type: EventSubscription['type'];
  readonly run: EventEffect<object>;
}

/** Event handlers of this application, by consumer, then by event name. */
export type Consumers = ReadonlyMap<string, ReadonlyMap<string, Effect>>;

/** Finds the methods under `OnEvent` in the providers and controllers of the application. */
@Injectable()
export class EventConsumers {
  #found: Consumers | undefined;

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
  ) {}

  /**
   * Throws for two effects of one consumer on one event, and for effects of a provider that is made anew for each
   * request.
   */
  all(): Consumers {
    this.#found ??= this.find();
    return this.#found;
  }

  private find(): Consumers {
    const consumers = new Map<string, Map<string, Effect>>();
    const wrappers = [...this.discovery.getProviders(), ...this.discovery.getControllers()];
    const seen = new Set<object>();
    for (const wrapper of wrappers) {
      const instance = wrapper.instance as Record<string, unknown> | undefined | null;
      if (typeof instance !== 'object' || instance === null || seen.has(instance)) continue;
      seen.add(instance);
      for (const { method, subscription } of this.subscriptions(instance)) {
        if (!wrapper.isDependencyTreeStatic())
          throw new Error(`${String(wrapper.name)}: an effect of events cannot be request-scoped.`);
        const effects = consumers.get(subscription.consumer) ?? new Map<string, Effect>();
        if (effects.has(subscription.type.name)) {
          throw new Error(`The consumer ${subscription.consumer} has two effects of ${subscription.type.name}.`);
        }
        effects.set(subscription.type.name, { type: subscription.type, run: method.bind(instance) });
        consumers.set(subscription.consumer, effects);
      }
    }
    return consumers;
  }

  private subscriptions(
    instance: Record<string, unknown>,
  ): { method: EventEffect<object>; subscription: EventSubscription }[] {
    const names = this.scanner.getAllMethodNames(Object.getPrototypeOf(instance) as object | null);
    return names.flatMap((name) => {
      const method = instance[name];
      const subscription = typeof method === 'function' ? subscriptionOf(method) : undefined;
      return subscription ? [{ method: method as EventEffect<object>, subscription }] : [];
    });
  }
}
