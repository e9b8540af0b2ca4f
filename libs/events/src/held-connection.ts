import type { DataSource, QueryRunner } from 'typeorm';

/** The features of a libs/database connection that are needed here in addition to queries. */
interface Connection {
  on(event: 'notification' | 'end', listener: () => void): this;
  off(event: 'notification' | 'end', listener: () => void): this;
  destroy(reason: Error): void;
  prepareAlways(): this;
  /** Why it is lost. */
  lost?: Error;
}

/** A connection of the pool that is kept, with the state of its session, until it is closed or lost. */
export class HeldConnection {
  private constructor(
    readonly runner: QueryRunner,
    private readonly connection: Connection,
    private readonly onEvent: () => void,
  ) {}

  /**
   * `onEvent` is called at a notification, and when the connection is lost. `prepare` makes the state of the session.
   */
  static async open(
    dataSource: DataSource,
    onEvent: () => void,
    prepare: (runner: QueryRunner) => Promise<unknown>,
  ): Promise<HeldConnection> {
    const runner = dataSource.createQueryRunner();
    const connection = (await runner.connect()) as Connection;
    connection.prepareAlways().on('notification', onEvent).on('end', onEvent);
    const held = new HeldConnection(runner, connection, onEvent);
    try {
      await prepare(runner);
    } catch (error) {
      await held.close();
      throw error;
    }
    return held;
  }

  /** Why the connection is lost; undefined while it is not. */
  get lost(): Error | undefined {
    return this.connection.lost;
  }

  /** Ends the connection, and with it the state of its session. */
  async close(): Promise<void> {
    this.connection.off('notification', this.onEvent).off('end', this.onEvent);
    this.connection.destroy(new Error('This session was closed.'));
    await this.runner.release();
  }
}
