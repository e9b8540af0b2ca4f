import { setTimeout as delay } from 'node:timers/promises';
import { ThrottledLog } from '@atoll/waiting';
import { Logger } from '@nestjs/common';
import { MigrationExecutor, type DataSource, type QueryRunner } from 'typeorm';
import { BlockerWatch } from './blocker-watch.js';
import { createSchema } from './create-schema.js';
import { errorCodeOf } from './database-errors.js';

const lockPauseMs = 100;
/** A migration that did not get its lock rests for so many times as long as it has held others up. */
const restsPerTry = 4;
const looksPerTry = 2;
/** A wait that goes on for longer than a try has time is one that holds nobody up, and the log says so all the same. */
const looksUntilTold = 2 * looksPerTry;

const logger = new Logger('Database');

/**
 * Makes the schema and runs the migrations that are missing, one process at a time. On a first start they are one
 * transaction. Else replicas of the release before may be at work: a migration waits for a lock for `lockMs` at most,
 * is undone, and is tried again after a rest, without end. Says once a minute what it waits for. Throws whatever else
 * fails. Uses two connections of the DataSource. The lock that keeps other processes waiting ends with them.
 */
export async function runMigrations(dataSource: DataSource, schema: string, lockMs: number): Promise<void> {
  const guard = dataSource.createQueryRunner();
  await lock(guard, schema);
  await createSchema(guard, schema);
  const runner = dataSource.createQueryRunner();
  const migrator = new MigrationExecutor(dataSource, runner);
  migrator.transaction = 'each';
  const names = (await migrator.getPendingMigrations()).map(({ name }) => name);
  if (names.length === 0) return;
  const isFirstStart = names.length === dataSource.migrations.length;
  if (isFirstStart) await inOneTransaction(runner, migrator);
  else await besideOthers(runner, migrator, guard, schema, lockMs);
  const all = names.length > 1 && isFirstStart;
  // Nobody reads all the names.
  logger.log(`Migrated ${schema}: ${all ? `new tables, by all ${names.length} migrations` : names.join(', ')}`);
}

/** Nobody uses the tables yet, and a transaction for each migration, or several for each index, would take longer. */
async function inOneTransaction(runner: QueryRunner, migrator: MigrationExecutor): Promise<void> {
  await runner.startTransaction();
  try {
    await migrator.executePendingMigrations();
    await runner.commitTransaction();
  } catch (error) {
    await runner.rollbackTransaction().catch(() => undefined);
    throw error;
  }
}

async function besideOthers(
  runner: QueryRunner,
  migrator: MigrationExecutor,
  guard: QueryRunner,
  schema: string,
  lockMs: number,
): Promise<void> {
  const log = new ThrottledLog(({ message }) => logger.warn(message));
  const tell = () => {
    const inItsWay = watch.blockers || 'a session';
    log.log('waits', {
      message: `The migration of ${schema} waits for locks, and goes on by itself. In its way: ${inItsWay}`,
    });
  };
  const pid = await prepareSession(runner);
  const watch = new BlockerWatch(guard, pid, lockMs / looksPerTry, (waits) => {
    if (waits >= looksUntilTold) tell();
  });
  try {
    while (!(await tryToMigrate(runner, migrator, lockMs))) {
      tell();
      await delay(restsPerTry * lockMs);
      if (watch.lost) throw watch.lost;
    }
  } finally {
    await watch.stop();
  }
}

/** Returns the session's process. */
async function prepareSession(runner: QueryRunner): Promise<number> {
  // Of a process that has ended, nothing waits or builds an index for more than some seconds longer. Not every system
  // that PostgreSQL runs on can tell.
  await runner.query(`SET client_connection_check_interval = '2s'`).catch(() => undefined);
  const [session] = (await runner.query('SELECT pg_backend_pid() AS pid')) as { pid: number }[];
  return session?.pid ?? 0;
}

/** Whether all has been done. Where not, a lock that others hold was in the way. */
async function tryToMigrate(runner: QueryRunner, migrator: MigrationExecutor, lockMs: number): Promise<boolean> {
  await runner.query(`SET lock_timeout = ${Math.ceil(lockMs)}`);
  try {
    await migrator.executePendingMigrations();
    return true;
  } catch (error) {
    // It waited for too long, or those in its way waited for it as well.
    if (/^(55P03|40P01)$/.test(errorCodeOf(error) ?? '')) return false;
    throw error;
  }
}

/**
 * Tries again and again rather than wait inside a statement, whose snapshot would keep an index from being created
 * concurrently in the process that migrates.
 */
async function lock(runner: QueryRunner, schema: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const [row] = (await runner.query(`SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS held`, [
      `atoll migrations ${schema}`,
    ])) as {
      held: boolean;
    }[];
    if (row?.held) return;
    if (attempt === 1) logger.log(`Another process is migrating ${schema}; waiting for it.`);
    await delay(lockPauseMs);
  }
}
