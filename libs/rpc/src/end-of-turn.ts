let ending: Promise<void> | undefined;

/**
 * Resolves when this turn of the event loop has read everything that had come in. What is published then leaves in one
 * write to the socket: the NATS client writes once a microtask, and under load each request comes in a microtask of its
 * own. Costs an idle process nothing.
 */
export function endOfTurn(): Promise<void> {
  ending ??= new Promise((resolve) => {
    setImmediate(() => {
      ending = undefined;
      resolve();
    });
  });
  return ending;
}
