import type { DataSource, EntityMetadata } from 'typeorm';
import type { MachineDefinition } from './definition.js';
import type { MachineRow } from './machine-row.js';

/** A machine as a value: the entity of its rows, and its definition. */
export interface Machine<
  Row extends MachineRow = MachineRow,
  State extends string = string,
  Event extends string = string,
> {
  readonly entity: new () => Row;
  readonly definition: MachineDefinition<State, Event>;
}

/**
 * Values for columns of rows. A function returns an SQL expression over the columns of the table. PostgreSQL evaluates
 * it for each row as the row is before the change; its text must not depend on data.
 */
export type SetValues<Row> = { [Property in keyof Row]?: Row[Property] | (() => string) };

/** Maps between the rows of a machine as SQL returns them and its entities. */
export class MachineTable<Row extends MachineRow> {
  private readonly metadata: EntityMetadata;
  readonly table: string;
  /** Column of the primary key, and its type. */
  readonly key: string;
  readonly keyType: string;

  constructor(
    dataSource: DataSource,
    readonly entity: new () => Row,
  ) {
    this.metadata = dataSource.getMetadata(entity);
    const [primary] = this.metadata.primaryColumns;
    if (!primary) throw new Error(`${this.metadata.name} has no primary key.`);
    this.table = this.metadata.tableName;
    this.key = primary.databaseName;
    this.keyType = dataSource.driver.normalizeType(primary);
  }

  /** An entity from a row by column names. */
  rowOf(raw: object): Row {
    const row = this.metadata.create() as Row;
    const columns = raw as Record<string, unknown>;
    for (const { propertyName, databaseName } of this.metadata.columns)
      Object.assign(row, { [propertyName]: columns[databaseName] });
    return row;
  }

  /** Column names and values of the given properties. A jsonb value is JSON text, or with `json` the value itself. */
  columnsOf(values: object, form: 'sql' | 'json' = 'sql'): Map<string, unknown> {
    const given = values as Record<string, unknown>;
    return new Map(
      this.metadata.columns
        .filter(({ propertyName }) => given[propertyName] !== undefined)
        .map(({ propertyName, databaseName, type }) => {
          const value = given[propertyName];
          return [databaseName, form === 'sql' && isJson(type, value) ? JSON.stringify(value) : value];
        }),
    );
  }

  keyOf(row: MachineRow): unknown {
    return this.columnsOf(row).get(this.key);
  }
}

/** An expression of `SetValues` is a function, and stays one. */
function isJson(type: unknown, value: unknown): boolean {
  return type === 'jsonb' && value !== null && typeof value !== 'function';
}
