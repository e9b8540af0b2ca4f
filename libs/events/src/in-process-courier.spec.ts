import { describe, expect, it, jest } from '@jest/globals';
import { CourierAway, type DomainEvent, type EventConsumer, type Outcome } from './courier.js';
import { InProcessCourier } from './in-process-courier.js';

const greeted: DomainEvent = {
  id: '0197f000-0000-7000-8000-000000000001',
  name: 'hall.greeted',
  payload: {},
  occurredAt: '2026-01-01T00:00:00.000Z',
};
const nothing = () => undefined;

function consumer(
  take: (event: DomainEvent, attempt: number) => Promise<Outcome>,
  ...eventNames: string[]
): EventConsumer {
  return { name: 'guest-book', eventNames, take };
}

describe('the in-process courier', () => {
  it('publishes nothing until each of its services has joined, and tells all when they have', async () => {
    const courier = new InProcessCourier({ services: ['hall', 'kitchen'] });
    const onReady = jest.fn();
    const hall = courier.join('hall', [], onReady);
    expect(hall.status()).toEqual({ ready: false, reason: 'events wait for kitchen' });
    await expect(hall.publish(greeted, 1)).rejects.toThrow(CourierAway);
    expect(onReady).not.toHaveBeenCalled();
    const take = jest.fn<EventConsumer['take']>(() => Promise.resolve('done'));
    const kitchen = courier.join('kitchen', [consumer(take, 'hall.greeted')], onReady);
    expect(onReady).toHaveBeenCalledTimes(2);
    expect(await hall.publish(greeted, 3)).toBe('done');
    expect(take).toHaveBeenCalledWith(greeted, 3);
    await kitchen.close();
    await expect(hall.publish(greeted, 1)).rejects.toThrow('events wait for kitchen');
  });

  it('hands an event to those alone who take it', async () => {
    const courier = new InProcessCourier({ services: ['hall'] });
    const take = jest.fn<EventConsumer['take']>(() => Promise.resolve('done'));
    const hall = courier.join('hall', [consumer(take, 'hall.left')], nothing);
    expect(await hall.publish(greeted, 1)).toBe('done');
    expect(take).not.toHaveBeenCalled();
  });

  it('is done with an event when all its consumers are, and waits for the longest back-off', async () => {
    const courier = new InProcessCourier({ services: ['hall'] });
    const outcomes: Outcome[] = ['done', { retryAfterMs: 5, reason: 'soon' }, { retryAfterMs: 50, reason: 'late' }];
    const consumers = outcomes.map((outcome) => consumer(() => Promise.resolve(outcome), 'hall.greeted'));
    const hall = courier.join('hall', consumers, nothing);
    expect(await hall.publish(greeted, 1)).toEqual({ retryAfterMs: 50, reason: 'late' });
  });

  it('hands a consumer one event at a time, in the order of publishing, and lets it finish before it leaves', async () => {
    const courier = new InProcessCourier({ services: ['hall'] });
    const steps: string[] = [];
    const slow = consumer(async (_event, attempt) => {
      steps.push(`begins ${attempt}`);
      await new Promise((resolve) => setImmediate(resolve));
      steps.push(`ends ${attempt}`);
      return 'done';
    }, 'hall.greeted');
    const hall = courier.join('hall', [slow], nothing);
    const published = [hall.publish(greeted, 1), hall.publish(greeted, 2)];
    await hall.stopDelivering();
    expect(steps).toEqual(['begins 1', 'ends 1', 'begins 2', 'ends 2']);
    expect(await Promise.all(published)).toEqual(['done', 'done']);
  });

  it('refuses a service it was not told of, and one that has joined', () => {
    const courier = new InProcessCourier({ services: ['hall'] });
    courier.join('hall', [], nothing);
    expect(() => courier.join('hall', [], nothing)).toThrow('hall has already joined this courier.');
    expect(() => courier.join('attic', [], nothing)).toThrow('attic is not a service of this courier: hall.');
  });
});
