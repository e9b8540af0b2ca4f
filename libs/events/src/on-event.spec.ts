import { describe, expect, it } from '@jest/globals';
import { event, Text } from '@atoll/contracts';
import { Injectable, Module, Scope, type Type } from '@nestjs/common';
import { DiscoveryModule, NestFactory } from '@nestjs/core';
import { EventConsumers, type Consumers } from './event-consumers.js';
import { OnEvent, type EventDelivery } from './on-event.js';

class Greeted {
  @Text({ max: 10 })
  name!: string;
}
class GreetedLoudly extends Greeted {
  @Text({ max: 10 })
  volume!: string;
}
const greeted = event('hall.greeted', Greeted);
const left = event('hall.left', Greeted);

async function consumersOf(...providers: Type[]): Promise<Consumers> {
  @Module({ imports: [DiscoveryModule], providers: [EventConsumers, ...providers] })
  class Hall {}
  const app = await NestFactory.createApplicationContext(Hall, { abortOnError: false });
  try {
    return app.get(EventConsumers).all();
  } finally {
    await app.close();
  }
}

describe('OnEvent', () => {
  it('gathers the effects of a consumer from all providers, inherited ones included', async () => {
    abstract class Base {
      readonly names: string[] = [];

      @OnEvent(greeted, { consumer: 'guest-book' })
      sign(payload: Greeted): Promise<void> {
        return Promise.resolve(void this.names.push(payload.name));
      }
    }
    @Injectable()
    class Book extends Base {}
    @Injectable()
    class Door {
      @OnEvent(left, { consumer: 'guest-book' })
      close(_payload: Greeted, _delivery: EventDelivery): Promise<void> {
        return Promise.resolve();
      }
    }
    const consumers = await consumersOf(Book, Door);
    expect([...consumers.keys()]).toEqual(['guest-book']);
    expect([...(consumers.get('guest-book')?.keys() ?? [])]).toEqual(['hall.greeted', 'hall.left']);
  });

  it('refuses two effects of one consumer on one event', async () => {
    @Injectable()
    class Twice {
      @OnEvent(greeted, { consumer: 'echo' })
      first(): Promise<void> {
        return Promise.resolve();
      }

      @OnEvent(greeted, { consumer: 'echo' })
      second(): Promise<void> {
        return Promise.resolve();
      }
    }
    await expect(consumersOf(Twice)).rejects.toThrow('The consumer echo has two effects of hall.greeted.');
  });

  it('refuses an effect of a provider that lives for one request', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Fleeting {
      @OnEvent(greeted, { consumer: 'echo' })
      hear(): Promise<void> {
        return Promise.resolve();
      }
    }
    await expect(consumersOf(Fleeting)).rejects.toThrow('Fleeting: an effect of events cannot be request-scoped.');
  });

  it('refuses a name that the broker could not take', () => {
    for (const consumer of ['', 'Guest', 'guest book', 'guest.book', '9', 'a'.repeat(65)]) {
      expect(() => OnEvent(greeted, { consumer })).toThrow('is not a valid consumer name');
    }
  });
});

// What follows does not run: `tsc` refuses a `@ts-expect-error` above a line that compiles.

class _Effects {
  @OnEvent(greeted, { consumer: 'types' })
  exact(_payload: Greeted, _delivery: EventDelivery): Promise<void> {
    return Promise.resolve();
  }

  @OnEvent(greeted, { consumer: 'types' })
  less(_payload: { name: string }): Promise<void> {
    return Promise.resolve();
  }

  // @ts-expect-error the event has no volume
  @OnEvent(greeted, { consumer: 'types' })
  narrower(_payload: GreetedLoudly): Promise<void> {
    return Promise.resolve();
  }

  // @ts-expect-error another payload altogether
  @OnEvent(greeted, { consumer: 'types' })
  other(_payload: { count: number }): Promise<void> {
    return Promise.resolve();
  }

  // @ts-expect-error the delivery has no such field
  @OnEvent(greeted, { consumer: 'types' })
  delivery(_payload: Greeted, _delivery: EventDelivery & { attempt: number }): Promise<void> {
    return Promise.resolve();
  }

  // @ts-expect-error an effect is awaited
  @OnEvent(greeted, { consumer: 'types' })
  notAwaited(_payload: Greeted): void {}
}
