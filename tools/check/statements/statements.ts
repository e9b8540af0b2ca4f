import { NestFactory } from '@nestjs/core';
import { DatabaseModule } from '@atoll/database';
import { startPostgres } from '@atoll/testing';
import ts from 'typescript';
import { serviceDefinitions } from '../../service-definitions.js';
import { Preparer } from './describe-statement.js';
import { findStatements, type Statement } from './find-statements.js';
import { rowFaults } from './row-faults.js';

const root = process.cwd();

function readProgram(): ts.Program {
  const host: ts.ParseConfigFileHost = {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: ({ messageText }) => {
      throw new Error(ts.flattenDiagnosticMessageText(messageText, '\n'));
    },
  };
  const config = ts.getParsedCommandLineOfConfigFile('tsconfig.json', {}, host);
  if (!config) throw new Error('tsconfig.json cannot be read.');
  const files = config.fileNames.filter((file) => !/(spec|fixture)\.ts$/.test(file));
  return ts.createProgram(files, config.options);
}

/** Statements of libraries name the tables that each service gives them; those specs run them. Migrations run whole. */
const isSource = (file: string) => /^(apps|libs)\/[^/]+\/src\//.test(file) && !/\/migrations\/|(spec|fixture)\.ts$/.test(file);

async function faultsOf(statement: Statement, preparer: Preparer, checker: ts.TypeChecker): Promise<string[]> {
  if ('unread' in statement.texts) return [`cannot be read from the source: ${statement.texts.unread}`];
  const faults: string[] = [];
  for (const text of statement.texts.texts) {
    const found = await preparer.describe(text);
    if ('fault' in found) faults.push(`${found.fault}\n${text.replace(/^/gm, '    ')}`);
    else if (statement.row) faults.push(...rowFaults(statement.row, found.columns, checker));
  }
  return [...new Set(faults)];
}

const program = readProgram();
const statements = findStatements(program, root, isSource);
const postgres = await startPostgres();
let prepared = 0;
try {
  for (const { name, database } of await serviceDefinitions()) {
    const own = statements.filter(({ file }) => file.startsWith(`apps/${name}/`));
    const module = DatabaseModule.forRoot({ ...database, schema: name, url: postgres.url, poolSize: 2 });
    await (await NestFactory.createApplicationContext(module, { logger: ['error', 'warn'] })).close();
    const preparer = await Preparer.connect(postgres.url, name);
    for (const statement of own) {
      prepared += 'texts' in statement.texts ? statement.texts.texts.length : 0;
      for (const fault of await faultsOf(statement, preparer, program.getTypeChecker())) {
        console.log(`${statement.file}:${statement.line}: ${fault}`);
        process.exitCode = 1;
      }
    }
    await preparer.close();
  }
} finally {
  await postgres.stop();
}
console.log(`${prepared} statements prepared`);
