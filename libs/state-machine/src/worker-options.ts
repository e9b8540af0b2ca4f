/** How a worker runs the steps of its machine. */
export interface WorkerOptions {
  /** Recorded as the actor `system:<service>`. */
  readonly service: string;
  /**
   * Steps of one machine that run at once in this process. Default 500: a running step mostly waits, and holds no
   * database connection meanwhile.
   */
  readonly concurrency?: number;
  /** Steps of one lane that run at once in this process. Default 4. */
  readonly laneConcurrency?: number;
  /** Milliseconds between two polls, which find what other replicas have made due. Default 500. */
  readonly pollMs?: number;
  /** Time limit of a step in milliseconds. Default 10,000. */
  readonly stepMs?: number;
  /** Milliseconds between two sweeps (`DurableMachine.sweep`). Default 30,000. */
  readonly sweepMs?: number;
}
