import { describe, expect, it } from '@jest/globals';
import { mutationsOf } from './mutations.js';

const changed = (text: string) => mutationsOf('a.ts', text).map((mutation) => [mutation.what, mutation.text]);

describe('the mutations of a file', () => {
  it('move limits, turn conditions, and drop steps', () => {
    expect(changed('if (a < b) await go();')).toEqual([
      ['a < b never holds', 'if (false) await go();'],
      ['< becomes <= in a < b', 'if (a <= b) await go();'],
      ['await go(); is dropped', 'if (a < b) ;'],
    ]);
    expect(changed('const x = !a && b;')).toEqual([
      ['! is dropped', 'const x = (a) && b;'],
      ['&& becomes || in !a && b', 'const x = !a || b;'],
    ]);
    expect(changed(`requirePermission(caller, team_id, 'readTeam');\nplan();`)).toEqual([
      [`requirePermission(caller, team_id, 'readTeam'); is dropped`, ';\nplan();'],
    ]);
  });

  it('drop predicates and locks of SQL, and turn its order and limits', () => {
    const sql = 'q(`SELECT a FROM b WHERE c = $1 AND team_id = $2 AND d < now() ORDER BY e FOR UPDATE`);';
    expect(changed(sql).map(([what]) => what)).toEqual([
      'in SQL "c = $1" becomes "(c = $1 OR true)"',
      'in SQL "team_id = $2" becomes "(team_id = $2 OR true)"',
      'in SQL "d < now()" becomes "(d < now() OR true)"',
      'in SQL "<" becomes "<="',
      'in SQL "ORDER BY e" becomes "ORDER BY e DESC"',
      'in SQL "FOR UPDATE" becomes ""',
    ]);
    expect(changed(sql)[1]?.[1]).toBe(
      'q(`SELECT a FROM b WHERE c = $1 AND (team_id = $2 OR true) AND d < now() ORDER BY e FOR UPDATE`);',
    );
  });

  it('drop predicates of a condition that stands by itself', () => {
    expect(changed(`const mine = 'consumer = $1 AND publisher = $2';`).map(([, text]) => text)).toEqual([
      `const mine = '(consumer = $1 OR true) AND publisher = $2';`,
      `const mine = 'consumer = $1 AND (publisher = $2 OR true)';`,
    ]);
  });

  it('leave statements that PostgreSQL can read, whatever is compared with what', () => {
    const predicates = (sql: string) =>
      changed(`q('UPDATE a SET b = 1 WHERE ${sql}');`)
        .map(([what = '']) => /^in SQL "(.*)" becomes "\(.* OR true\)"$/.exec(what)?.[1])
        .filter((found) => found !== undefined);
    expect(predicates('a.c = $1::uuid AND d = ANY ($2::text[])')).toEqual(['a.c = $1::uuid', 'd = ANY ($2::text[])']);
    expect(predicates('c = lower($1) AND d IS NOT NULL')).toEqual(['c = lower($1)', 'd IS NOT NULL']);
    expect(predicates('c IN ($1, $2) AND NOT d = e')).toEqual(['c IN ($1, $2)', 'NOT d = e']);
    expect(predicates('team_id = $1')).toEqual(['team_id = $1']);
    // A part of what is compared is no predicate.
    expect(predicates('c = $1 AND d < now() - e')).toEqual(['c = $1']);
    expect(predicates('c = $1 AND d = coalesce(e, lower(f))')).toEqual(['c = $1']);
  });

  it('drop predicates and locks of TypeORM', () => {
    expect(changed(`m.findOneBy(A, { id, teamId: team });`).map(([, text]) => text)).toEqual([
      `m.findOneBy(A, { teamId: team });`,
      `m.findOneBy(A, { id });`,
    ]);
    expect(
      changed(`m.findOne(A, { where: { id, teamId }, order: { id: 'ASC' }, lock: { mode } });`).map(([, text]) => text),
    ).toEqual([
      `m.findOne(A, { where: { teamId }, order: { id: 'ASC' }, lock: { mode } });`,
      `m.findOne(A, { where: { id }, order: { id: 'ASC' }, lock: { mode } });`,
      `m.findOne(A, { where: { id, teamId }, order: { id: 'ASC' } });`,
    ]);
    expect(changed(`m.update(A, { id, teamId }, { name, age });`)).toHaveLength(2);
    expect(changed(`m.countBy(A, { teamId });`)).toEqual([]);
  });

  it('leave types, imports, texts, and what is only told', () => {
    expect(
      changed(
        `import a from 'b'; type C = 'x' | 'y'; const t = 'a' + b; throw new AppError('conflict', a < b ? 'x' : 'y'); this.logger.warn(a + b);`,
      ),
    ).toEqual([]);
  });

  it('say their line', () => {
    expect(mutationsOf('a.ts', 'const a = 1;\nconst b = a > 1;')[0]?.line).toBe(2);
  });
});
