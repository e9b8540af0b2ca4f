import type { MigrationInterface } from 'typeorm';

type Class<T> = new () => T;

const brought = new WeakMap<object, readonly Class<MigrationInterface>[]>();

/**
 * For an entity that a library gives to many services: each service with it runs these migrations too, beside its own,
 * and names them nowhere. They find the schema as `current_schema()`, run before or after the migration by which the
 * service creates the table, and must therefore do nothing where the table is missing or up to date.
 */
export function BringsMigrations(...migrations: Class<MigrationInterface>[]) {
  return (entity: Class<object>): void => void brought.set(entity, migrations);
}

/** Migrations that these entities bring, each once. */
export function migrationsOf(entities: readonly Class<object>[]): Class<MigrationInterface>[] {
  return [...new Set(entities.flatMap((entity) => brought.get(entity) ?? []))];
}
