import type { DataSource, EntityMetadata } from 'typeorm';
import type { MachineDefinition } from './definition.js';
import type { MachineRow } from './machine-row.js';

/** A machine as a value: what its rows are, and what may happen to them. */
export interface Machine<Row extends MachineRow = MachineRow, State extends string = string, Event extends string = string> {
  readonly entity: new () => Row;
  readonly definition: MachineDefinition<State, Event>;
}

/** The table of a machine, in the words of SQL. */
export class MachineTable<Row extends MachineRow> {
  private readonly metadata: EntityMetadata;
  readonly table: string;
  /** The column of its primary key, and that column's type. */
  readonly key: string;
  readonly keyType: string;

  constructor(dataSource: DataSource, entity: new () => Row) {
    this.metadata = dataSource.getMetadata(entity);
    const [primary] = this.metadata.primaryColumns;
    if (!primary) throw new Error(`${this.metadata.name} has no primary key.`);
    this.table = this.metadata.tableName;
    this.key = primary.databaseName;
    this.keyType = dataSource.driver.normalizeType(primary);
  }

  /** A row as it came from SQL, by the names of its columns, as an instance of its entity. */
  rowOf(raw: object): Row {
    const row = this.metadata.create() as Row;
    const columns = raw as Record<string, unknown>;
    for (const { propertyName, databaseName } of this.metadata.columns) Object.assign(row, { [propertyName]: columns[databaseName] });
    return row;
  }

  /** Names and values of what is given of a row, for SQL; a jsonb column is a text there, or with `json` what it holds. */
  columnsOf(values: object, form: 'sql' | 'json' = 'sql'): Map<string, unknown> {
    const given = values as Record<string, unknown>;
    return new Map(
      this.metadata.columns
        .filter(({ propertyName }) => given[propertyName] !== undefined)
        .map(({ propertyName, databaseName, type }) => {
          const value = given[propertyName];
          return [databaseName, form === 'sql' && type === 'jsonb' && value !== null ? JSON.stringify(value) : value];
        }),
    );
  }

  keyOf(row: MachineRow): unknown {
    return this.columnsOf(row).get(this.key);
  }
}
