import { DefaultNamingStrategy, type Table } from 'typeorm';

/**
 * Properties are camelCase, columns snake_case, and constraints have the names that PostgreSQL itself gives
 * (`member_pkey`, `member_email_key`, `member_team_id_fkey`, `member_team_id_idx`), so that a migration written in
 * plain SQL matches its entities without naming anything.
 */
export class NamingStrategy extends DefaultNamingStrategy {
  override columnName(property: string, custom: string | undefined, embeddedPrefixes: string[]): string {
    return [...embeddedPrefixes.map(snakeCase), custom ?? snakeCase(property)].join('_');
  }

  override joinColumnName(relation: string, referencedColumn: string): string {
    return `${snakeCase(relation)}_${referencedColumn}`;
  }

  override primaryKeyName(table: Table | string): string {
    return `${this.getTableName(table)}_pkey`;
  }

  override uniqueConstraintName(table: Table | string, columns: string[]): string {
    return `${this.getTableName(table)}_${columns.join('_')}_key`;
  }

  override relationConstraintName(table: Table | string, columns: string[]): string {
    return this.uniqueConstraintName(table, columns);
  }

  override foreignKeyName(table: Table | string, columns: string[]): string {
    return `${this.getTableName(table)}_${columns.join('_')}_fkey`;
  }

  override indexName(table: Table | string, columns: string[]): string {
    return `${this.getTableName(table)}_${columns.join('_')}_idx`;
  }
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
