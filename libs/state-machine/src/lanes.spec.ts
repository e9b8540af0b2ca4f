import { beforeEach, describe, expect, it } from '@jest/globals';
import { Lanes } from './lanes.js';

let nowMs: number;
let lanes: Lanes;
beforeEach(() => {
  nowMs = 0;
  lanes = new Lanes({ concurrency: 8, laneConcurrency: 3 }, () => nowMs);
});

const begin = (lane: string, times: number) => Array.from({ length: times }).forEach(() => lanes.begin(lane));

describe('a lane', () => {
  it('has room for its limit less what is under way, and is forgotten when nothing is', () => {
    begin('a', 2);
    expect(lanes.loads()).toEqual({ spare: 2, room: 3, loads: { a: [2, 1] } });
    lanes.end('a');
    expect(lanes.loads()).toEqual({ spare: 3, room: 3, loads: { a: [1, 2] } });
    lanes.end('a');
    expect([lanes.loads(), lanes.free]).toEqual([{ spare: 4, room: 3, loads: {} }, 8]);
  });

  it('gets more than one step only of the first half of all steps', () => {
    begin('a', 3);
    begin('b', 1);
    expect([lanes.loads().spare, lanes.free]).toEqual([0, 4]);
    begin('c', 1);
    expect([lanes.loads().spare, lanes.free]).toEqual([0, 3]);
  });

  it('that hangs is tried by one step at a time, until it answers or a minute has passed', () => {
    begin('a', 1);
    lanes.hung('a');
    lanes.hung('b');
    expect([lanes.loads().loads, lanes.hanging]).toEqual([{ a: [1, 0], b: [0, 1] }, ['a', 'b']]);
    lanes.answered('b');
    expect(lanes.loads().loads).toEqual({ a: [1, 0] });
    nowMs = 60_001;
    expect([lanes.loads().loads, lanes.hanging]).toEqual([{ a: [1, 2] }, []]);
  });

  it('gets no step while many steps wait for a connection', () => {
    lanes = new Lanes({ concurrency: 100, laneConcurrency: 3 });
    const free = (waiting: number) => {
      lanes.queues.clear();
      for (let at = 0; at < 99; at += 1) lanes.queues.add({ isWaiting: at < waiting });
      return lanes.free;
    };
    expect([0, 60, 64, 99].map(free)).toEqual([64, 4, 0, 0]);
  });

  it('may have any name', () => {
    begin('__proto__', 1);
    expect(JSON.parse(JSON.stringify(lanes.loads().loads))).toEqual(JSON.parse('{"__proto__": [1, 2]}'));
  });
});
