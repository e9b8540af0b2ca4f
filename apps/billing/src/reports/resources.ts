import { Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';

/** A resource with one of its SKUs. */
export interface Timeline {
  no: number;
  resourceId: string;
  sku: string;
}

/** What is known of resources by name. */
@Injectable()
export class Resources {
  constructor(private readonly statements: Statements) {}

  async timelines(nos: readonly number[]): Promise<Map<number, Timeline>> {
    if (nos.length === 0) return new Map();
    const text = `SELECT no, resource_id AS "resourceId", sku FROM timeline WHERE no = ANY ($1::integer[])`;
    const rows = await this.statements.query<Timeline>('report timelines', text, [nos]);
    return new Map(rows.map((row) => [row.no, row]));
  }

  /** Names of workspaces by id, of those that are gone too. */
  async workspaceNames(ids: readonly string[]): Promise<Map<string, string>> {
    if (ids.length === 0) return new Map();
    const text = `SELECT id, name FROM workspace WHERE id = ANY ($1::uuid[])`;
    const rows = await this.statements.query<{ id: string; name: string }>('report workspaces', text, [ids]);
    return new Map(rows.map(({ id, name }) => [id, name]));
  }
}
