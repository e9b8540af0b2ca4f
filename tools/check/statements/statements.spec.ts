import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { mayReturnNull } from './describe-statement.js';
import { findStatements } from './find-statements.js';
import { nullFaults, rowFaults } from './row-faults.js';

const types = `
  class Statements { async query<Row extends object>(text: string, values: unknown[]): Promise<Row[]> { return []; } }
  class EntityManager { async query<Result>(text: string, values?: unknown[]): Promise<Result> { throw new Error(text); } }
  declare const statements: Statements; declare const manager: EntityManager; declare const flag: boolean; declare const unknownText: string;
`;

/** A program of one file, without a library. */
function programOf(source: string): ts.Program {
  const file = ts.createSourceFile('/apps/x/src/x.ts', types + source, ts.ScriptTarget.Latest, true);
  const host: ts.CompilerHost = {
    ...ts.createCompilerHost({}),
    getSourceFile: (name) => (name === file.fileName ? file : undefined),
    fileExists: (name) => name === file.fileName,
    getDefaultLibFileName: () => '/none.d.ts',
    getCurrentDirectory: () => '/',
  };
  return ts.createProgram([file.fileName], { noLib: true, target: ts.ScriptTarget.Latest, strict: true }, host);
}

function textsOf(source: string): (string | string[])[] {
  return findStatements(programOf(source), '/', () => true).map(({ texts }) =>
    'texts' in texts ? texts.texts : texts.unread,
  );
}

describe('the texts of a statement', () => {
  it.each([
    ['a literal', `statements.query('SELECT 1', []);`, ['SELECT 1']],
    [
      'a constant in a template',
      `const live = "state = 'x'"; manager.query(\`SELECT FROM a WHERE \${live}\`);`,
      [`SELECT FROM a WHERE state = 'x'`],
    ],
    ['both branches of a condition', `manager.query(flag ? 'SELECT 1' : 'SELECT 2');`, ['SELECT 1', 'SELECT 2']],
    [
      'each literal of a type',
      `declare const key: 'a' | 'b'; manager.query(\`SELECT \${key}\`);`,
      ['SELECT a', 'SELECT b'],
    ],
    ['a number', `declare const limit: number; manager.query(\`SELECT 1 LIMIT \${limit}\`);`, ['SELECT 1 LIMIT 1']],
    [
      'a function',
      `function page({ table, where = 'true' }: { table: string; where?: string }) { return \`SELECT FROM \${table} WHERE \${where}\`; }
       manager.query(page({ table: 'team' }));`,
      ['SELECT FROM team WHERE true'],
    ],
    [
      'a list with a part that may be left out',
      `const filters = ['a = 1', ...(flag ? ['b = 2'] : [])]; manager.query('SELECT FROM t WHERE ' + filters.join(' AND '));`,
      ['SELECT FROM t WHERE a = 1 AND b = 2', 'SELECT FROM t WHERE a = 1'],
    ],
  ])('are read where it is %s', (_what, source, texts) => {
    expect(textsOf(source)).toEqual([texts]);
  });

  it('are those of each caller where a function is given them, through another one too', () => {
    const source = `
      function find(text: string) { return statements.query(\`SELECT \${text}\`, []); }
      function findMore(text: string) { return find(\`\${text}, 0\`); }
      find('1'); findMore('2');`;
    expect(textsOf(source).toSorted()).toEqual([['SELECT 1'], ['SELECT 2, 0']]);
  });

  it.each([
    ['by another name', `const ask = find; ask('1');`],
    ['by a property', `const by = { ask: find }; by.ask('1');`],
    ['by what is taken from an object', `const { find: ask } = { find }; ask('1');`],
    ['by what a function returns', `const make = () => find; make()('1');`],
    ['where it may be missing', `const ask = flag ? find : undefined; ask?.('1');`],
  ])('are those of a caller that calls it %s', (_what, call) => {
    expect(
      textsOf(`function find(text: string) { return statements.query(\`SELECT \${text}\`, []); } ${call}`),
    ).toEqual([['SELECT 1']]);
  });

  it('are those of the callers of a function that has no name', () => {
    const source = `const finder = () => (text: string) => { return manager.query(\`SELECT \${text}\`); }; const find = finder(); find('1');`;
    expect(textsOf(source)).toEqual([['SELECT 1']]);
  });

  it('are those of a class that extends one which sends them as it is created', () => {
    const source = `
      class Sender { constructor(text: string) { void manager.query(\`SELECT \${text}\`); } }
      class Own extends Sender { constructor() { super('1'); } }`;
    expect(textsOf(source)).toEqual([['SELECT 1']]);
  });

  it('are told not to be readable where the source does not say', () => {
    expect(textsOf('manager.query(unknownText);')).toEqual(['unknownText (string)']);
  });
});

describe('the rows of a statement', () => {
  const faults = (row: string, columns: { name: string; type: number }[]) => {
    const program = programOf(`statements.query<${row}>('SELECT 1', []);`);
    const [statement] = findStatements(program, '/', () => true);
    return statement?.row && rowFaults(statement.row, columns, program.getTypeChecker());
  };

  it('have the columns that their type names', () => {
    expect(faults('{ id: string }', [{ name: 'id', type: 20 }])).toEqual([]);
    expect(faults('{ id: string }', [{ name: 'ID', type: 20 }])).toEqual(['has no column id: it returns ID']);
  });

  it.each([
    ['a bigint is a text', 'number', 20, 'returns a as string, not as number'],
    ['an integer is a number', 'string', 23, 'returns a as number, not as string'],
    ['a boolean is a boolean', 'string | null', 16, 'returns a as boolean, not as string | null'],
    ['an instant is a Date', 'string', 1184, 'returns a as Date, not as string'],
  ])('%s', (_what, type, oid, fault) => {
    expect(faults(`{ a: ${type} }`, [{ name: 'a', type: oid }])).toEqual([fault]);
  });

  const nullFaultsOf = (type: string, ...texts: (boolean | undefined)[]) => {
    const program = programOf(`statements.query<{ a: ${type} }>('SELECT 1', []);`);
    const [{ row } = {}] = findStatements(program, '/', () => true);
    const described = texts.map((isNullable) => [{ name: 'a', type: 25, isNullable }]);
    return row && nullFaults(row, described, program.getTypeChecker());
  };

  it.each([
    ['a column that may be null', 'string', true, ['returns a as null too, not only as string']],
    ['a column that may be null', 'string | null', true, []],
    ['a column that may be null', 'unknown', true, []],
    ['a column that is never null', 'string | null', false, ['never returns a as null']],
    ['a column that is never null', 'string', false, []],
    ['what is not known to be null', 'string', undefined, []],
    ['what is not known to be null', 'string | null', undefined, []],
  ])('may be null as the table says: of %s the type is %s', (_what, type, isNullable, found) => {
    expect(nullFaultsOf(type, isNullable)).toEqual(found);
  });

  it('is compared where all texts of the statement agree', () => {
    for (const type of ['string', 'string | null']) expect(nullFaultsOf(type, true, false)).toEqual([]);
    expect(nullFaultsOf('string', true, true)).toHaveLength(1);
  });

  it('may be anything where a column is JSON', () => {
    expect(faults('{ a: { b: string }[] }', [{ name: 'a', type: 114 }])).toEqual([]);
  });
});

describe('a column of a table', () => {
  const mayBeNull = (is_not_null: boolean, text: string) => mayReturnNull({ name: 'ended_at', is_not_null }, text);

  it('is null where the table says so', () => {
    expect(mayBeNull(false, 'SELECT ended_at FROM run WHERE id = $1')).toBe(true);
    expect(mayBeNull(true, 'SELECT ended_at FROM run WHERE id = $1')).toBe(false);
  });

  it('may be null beside an outer join', () => {
    expect(mayBeNull(true, 'SELECT ended_at FROM pod LEFT JOIN run USING (pod_id)')).toBeUndefined();
  });

  it.each([
    'WHERE ended_at IS NOT NULL',
    'WHERE run.ended_at\n  < now()',
    'WHERE (ended_at, id) > ($1, $2)',
    'WHERE ended_at = ANY ($1)',
    'JOIN day USING (place, ended_at)',
  ])('may be left out where it is null: %s', (condition) => {
    expect(mayBeNull(false, `SELECT ended_at FROM run ${condition}`)).toBeUndefined();
  });
});
