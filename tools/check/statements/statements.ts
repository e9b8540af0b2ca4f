import type ts from 'typescript';
import type { TableCheck } from '../tables/migrated.js';
import { clockFaults, indexedColumnsSql, type IndexedColumns } from './clock-faults.js';
import { Preparer, type Column } from './describe-statement.js';
import { findStatements, type Statement } from './find-statements.js';
import { nullFaults, rowFaults } from './row-faults.js';

const root = process.cwd();

/** Migrations run whole. */
const isSource = (file: string) =>
  /^(apps|libs)\/[^/]+\/src\//.test(file) && !/\/migrations\/|(spec|fixture)\.ts$/.test(file);

/** Of the tables of libraries it has each. */
const hasAllTables = 'gpuaas';

function isPreparedIn(service: string, file: string): boolean {
  return file.startsWith(`apps/${service}/`) || (service === hasAllTables && file.startsWith('libs/'));
}

async function faultsOf(
  statement: Statement,
  preparer: Preparer,
  indexed: IndexedColumns,
  checker: ts.TypeChecker,
): Promise<string[]> {
  if ('unread' in statement.texts) return [`cannot be read from the source: ${statement.texts.unread}`];
  const faults: string[] = [];
  const described: Column[][] = [];
  for (const text of statement.texts.texts) {
    const found = await preparer.describe(text);
    if ('fault' in found) faults.push(`${found.fault}\n${text.replace(/^/gm, '    ')}`);
    faults.push(...clockFaults(text, indexed));
    if ('columns' in found) described.push(found.columns);
  }
  const { row } = statement;
  if (row) {
    faults.push(...described.flatMap((columns) => rowFaults(row, columns, checker)));
    faults.push(...nullFaults(row, described, checker));
  }
  return [...new Set(faults)];
}

/**
 * Prepares each statement in the sources of a service, and of the libraries on whose tables it stands, against its
 * tables, compares what it returns with the type of its rows, and refuses what keeps indexes from use.
 */
export function statementCheck(program: ts.Program): TableCheck {
  const statements = findStatements(program, root, isSource);
  return async ({ service: { name }, dataSource, url }) => {
    const columns = await dataSource.query<{ name: string; tables: string[] }[]>(indexedColumnsSql, [name]);
    const indexed = new Map(columns.map((column) => [column.name, column.tables]));
    const preparer = await Preparer.connect(url, name);
    const faults: string[] = [];
    for (const statement of statements.filter(({ file }) => isPreparedIn(name, file))) {
      for (const fault of await faultsOf(statement, preparer, indexed, program.getTypeChecker())) {
        faults.push(`${statement.file}:${statement.line}: ${fault}`);
      }
    }
    await preparer.close();
    return faults;
  };
}
