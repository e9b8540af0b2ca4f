import { nanoPerUnit } from '../money/amounts.js';
import type { Pace } from '@atoll/waiting';

/** By interval of a grid; undefined where nothing changes. */
export interface QuantityChanges {
  /** Added to the quantity, in 10^-9 units. */
  deltasNano: (bigint | undefined)[];
  /** Of what is added: 10^-9 units × milliseconds since the interval’s start. */
  momentsNano: (bigint | undefined)[];
}

/** What changes in one interval of a grid. */
export interface QuantityChange {
  /** Its number, from 0. */
  interval: number;
  /** As those of `QuantityChanges`. */
  deltaNano: bigint;
  momentNano: bigint;
}

/**
 * Reads the changes of a quantity over a grid of so many intervals: four numbers for each interval that has any, in any
 * order. They are its place from 1, what is added, and the moment of that in whole units and in 10^-9.
 */
export async function readChanges(text: string, intervals: number, pace: Pace): Promise<QuantityChanges> {
  const deltasNano = new Array<bigint | undefined>(intervals).fill(undefined);
  const momentsNano = deltasNano.slice();
  const numbers = new WholeNumbers(text);
  while (numbers.hasMore) {
    const { interval, deltaNano, momentNano } = nextChange(numbers);
    deltasNano[interval] = deltaNano;
    momentsNano[interval] = momentNano;
    if (pace.isFull()) await pace.turn();
  }
  return { deltasNano, momentsNano };
}

/** Reads the same as a list, in the order of time. */
export async function listChanges(text: string, pace: Pace): Promise<QuantityChange[]> {
  const changes: QuantityChange[] = [];
  const numbers = new WholeNumbers(text);
  while (numbers.hasMore) {
    changes.push(nextChange(numbers));
    if (pace.isFull()) await pace.turn();
  }
  return pace.toSorted(changes, (a, b) => a.interval - b.interval);
}

function nextChange(numbers: WholeNumbers): QuantityChange {
  // Exact as a number: a place, not an amount.
  const interval = Number(numbers.read()) - 1;
  const deltaNano = numbers.read();
  return { interval, deltaNano, momentNano: numbers.read() * nanoPerUnit + numbers.read() };
}

const [minus, zero] = ['-', '0'].map((sign) => sign.charCodeAt(0)) as [number, number];
/** What a float holds exactly, whatever the digits are. */
const exactDigits = 15;

/** Whole numbers with a space between. Read digit by digit: to make a text of each takes three times as long. */
class WholeNumbers {
  private at = 0;

  constructor(private readonly text: string) {}

  get hasMore(): boolean {
    return this.at < this.text.length;
  }

  read(): bigint {
    const { text } = this;
    const from = this.at;
    const isNegative = text.charCodeAt(from) === minus;
    let at = isNegative ? from + 1 : from;
    let value = 0;
    for (let code = text.charCodeAt(at); code >= zero; code = text.charCodeAt(at)) {
      value = value * 10 + code - zero;
      at += 1;
    }
    this.at = at + 1;
    if (at - from > exactDigits) return BigInt(text.slice(from, at));
    return BigInt(isNegative ? -value : value);
  }
}
