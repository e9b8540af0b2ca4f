import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { moneyFaults } from './exact-money.js';

function faultsOf(code: string): { line: number; fault: string }[] {
  const file = ts.createSourceFile('/case.ts', code, ts.ScriptTarget.Latest, true);
  const library = ts.createSourceFile(
    '/lib.d.ts',
    'declare function Number(value: unknown): number;',
    ts.ScriptTarget.Latest,
    true,
  );
  const host: ts.CompilerHost = {
    ...ts.createCompilerHost({}),
    getSourceFile: (name) => [file, library].find(({ fileName }) => fileName === name),
    fileExists: (name) => name === file.fileName,
    getDefaultLibFileName: () => library.fileName,
    getCurrentDirectory: () => '/',
  };
  const program = ts.createProgram([file.fileName], { target: ts.ScriptTarget.Latest, strict: true }, host);
  return moneyFaults(file, program.getTypeChecker());
}

describe('the rule that no float touches money', () => {
  it.each([
    ['is money', 'const cost = 1.5; export { cost };'],
    ['is money', 'export const total = (unitPrice: number) => String(unitPrice);'],
    ['is money', 'export class Item { start_cost!: number }'],
    ['is money', 'export class Item { #cost = 1.5 }'],
    ['is money', 'export class Item { constructor(private readonly price: number) {} }'],
    ['is money', 'export class Item { start_cost: string | number = ""; }'],
    ['is money', 'export interface Row { quantity_nano: number }'],
    ['is money', 'const { amount } = { amount: 3 };'],
    ['is money', 'const { amount: lastPrice } = { amount: 3 };'],
    ['makes a float', 'export const shown = (nano: bigint) => Number(nano) / 1e9;'],
    ['in SQL', 'export const query = "SELECT cost::float8 FROM price";'],
    ['in SQL', 'export const query = (name: string) => `SELECT sum(quantity)::double precision FROM ${name}`;'],
    ['in SQL', 'export const query = (name: string) => `SELECT ${name}::float8`;'],
    ['in SQL', 'export const table = "CREATE TABLE price (unit_price real NOT NULL)";'],
  ])('finds a fault (%s) in: %s', (fault, code) =>
    expect(faultsOf(code)).toEqual([{ line: 1, fault: expect.stringContaining(fault) }]),
  );

  it.each([
    'export const cost = 1n;',
    'export class Item { cost!: string; percent!: number | null; costCount = 3 }',
    'export const timeOf = (ms: string) => Number(ms);',
    'export const words = "must be a real date, and floats on water";',
    'export const other = (from: { cost: unknown }) => from.cost;',
  ])('finds none in: %s', (code) => expect(faultsOf(code)).toEqual([]));

  it('excuses the line under a comment that says why, and no other', () => {
    const code =
      'export const count = (nano: bigint) =>\n  // Exact as a number: a count.\n  Number(nano)\n  + Number(nano);';
    expect(faultsOf(code)).toEqual([{ line: 4, fault: expect.stringContaining('makes a float') }]);
  });

  it('takes no comment without a reason, and none that excuses nothing', () => {
    expect(faultsOf('// Exact as a number: \nconst cost = 1.5;').map(({ line }) => line)).toEqual([2]);
    expect(faultsOf('// Exact as a number: a count.\nconst cost = 1n;').map(({ line }) => line)).toEqual([2]);
  });
});
