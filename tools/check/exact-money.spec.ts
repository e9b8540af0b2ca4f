import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ESLint } from 'eslint';
import tseslint from 'typescript-eslint';
import { exactMoney } from './exact-money.js';

let folder: string;
let eslint: ESLint;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-lint-'));
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: { target: 'es2023', strict: true }, include: ['*.ts'] }));
  eslint = new ESLint({
    cwd: folder,
    overrideConfigFile: true,
    overrideConfig: {
      files: ['**/*.ts'],
      languageOptions: { parser: tseslint.parser, parserOptions: { project: './tsconfig.json', tsconfigRootDir: folder } },
      plugins: { atoll: { rules: { 'exact-money': exactMoney } } },
      rules: { 'atoll/exact-money': 'error' },
    },
  });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function faultsOf(code: string): Promise<string[]> {
  const file = join(folder, `case.ts`);
  writeFileSync(file, code);
  const [result] = await eslint.lintFiles([file]);
  return (result?.messages ?? []).map(({ messageId, message }) => messageId ?? message);
}

describe('the rule that no float touches money', () => {
  it.each([
    ['number', 'const cost = 1.5; export { cost };'],
    ['number', 'export const total = (unitPrice: number) => String(unitPrice);'],
    ['number', 'export class Item { start_cost!: number }'],
    ['number', 'export class Item { start_cost: string | number = ""; }'],
    ['number', 'export interface Row { quantity_nano: number }'],
    ['number', 'export const { amount } = { amount: 3 };'],
    ['conversion', 'export const shown = (nano: bigint) => Number(nano) / 1e9;'],
    ['sql', 'export const query = "SELECT cost::float8 FROM price";'],
    ['sql', 'export const query = (name: string) => `SELECT sum(quantity)::double precision FROM ${name}`;'],
    ['sql', 'export const table = "CREATE TABLE price (unit_price real NOT NULL)";'],
  ])('finds a fault (%s) in: %s', async (fault, code) => expect(await faultsOf(code)).toEqual([fault]));

  it.each([
    'export const cost = 1n;',
    'export class Item { cost!: string; percent!: number | null; costCount = 3 }',
    'export const timeOf = (ms: string) => Number(ms);',
    'export const words = "must be a real date, and floats on water";',
  ])('finds none in: %s', async (code) => expect(await faultsOf(code)).toEqual([]));
});
