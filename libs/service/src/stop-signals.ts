import type { EventEmitter } from 'node:events';

/** Within it all signals are of one Ctrl-C. */
const onePressMs = 1_000;

/**
 * Calls `stop` at the first SIGTERM or SIGINT, and `force` at one that comes a second later or more: at a second
 * Ctrl-C. One Ctrl-C under npm is two signals, one of the terminal to all of its processes, and one that npm passes on.
 */
export function onStopSignals(
  stop: (signal: NodeJS.Signals) => void,
  force: () => void,
  signals: EventEmitter = process,
): void {
  let firstMs: number | undefined;
  const hear = (signal: NodeJS.Signals): void => {
    if (firstMs === undefined) {
      firstMs = performance.now();
      stop(signal);
    } else if (performance.now() - firstMs >= onePressMs) force();
  };
  signals.on('SIGTERM', hear);
  signals.on('SIGINT', hear);
}
