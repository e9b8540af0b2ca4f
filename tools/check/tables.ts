import type ts from 'typescript';
import { moneyFaults } from './exact-money.js';
import { checkTables } from './tables/migrated.js';
import { drift } from './tables/migration-drift.js';
import { pathOf, readProgram } from './program.js';
import { statementCheck } from './statements/statements.js';
import { upgrade } from './tables/upgrade.js';

/** Where sources reckon with money, or hand it on. */
const mayHoldMoney = /^(apps|libs\/contracts)\/(?!.*\.tsx$)/;

function checkMoney(program: ts.Program): void {
  for (const source of program.getSourceFiles().filter((each) => mayHoldMoney.test(pathOf(each)))) {
    for (const { line, fault } of moneyFaults(source, program.getTypeChecker())) {
      console.log(`${pathOf(source)}:${line}: ${fault}`);
      process.exitCode = 1;
    }
  }
}

/**
 * What needs the types of sources, with one program for those of the platform; and all checks of tables, with one
 * server and one run of the migrations.
 */
const program = readProgram('tsconfig.json');
checkMoney(program);
checkMoney(readProgram('apps/console/tsconfig.json'));
await checkTables([drift, upgrade, statementCheck(program)]);
