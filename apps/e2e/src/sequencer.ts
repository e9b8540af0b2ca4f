import { existsSync } from 'node:fs';

/**
 * Stories of more than some 5 s on an idle machine, the longest first. Most of that is waiting, so they had better not
 * be the last to start.
 */
const long = [
  'operator',
  'killed-at-once',
  'over-nats/failure',
  'in-one-process/first-start',
  'console/faults',
  'console/demo',
  'single-sign-on',
  'in-one-process/operating',
  'rate-limits',
  'console/pages',
  'console/operation',
  'console/vms',
  'compat-pods',
  'pods',
  'vms',
  'pod-logs',
  'gpu-holdings',
  'gpu-fallback',
  'console/terminal',
  'browser-sessions',
];

const gone = long.filter((name) => !existsSync(`apps/e2e/src/${name}.e2e-spec.ts`));
if (gone.length > 0) throw new Error(`No such story any more: ${gone.join(', ')}`);

/**
 * Runs the long ones first, the others in the order of their names: the same in a fresh clone, where Jest knows of no
 * durations yet.
 */
class Sequencer {
  sort<T extends { readonly path: string }>(tests: readonly T[]): T[] {
    const place = ({ path }: T) => {
      const index = long.findIndex((name) => path.endsWith(`/${name}.e2e-spec.ts`));
      return index === -1 ? long.length : index;
    };
    return tests.toSorted((one, other) => place(one) - place(other) || (one.path < other.path ? -1 : 1));
  }

  cacheResults(): void {}
}

export { Sequencer as default };
