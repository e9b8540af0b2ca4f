import { relative } from 'node:path';
import ts from 'typescript';

const isSpec = /(spec|fixture)\.ts$/;

/**
 * The sources that a `tsconfig.json` includes, with their types; without specs, and without the components of pages.
 */
export function readProgram(configFile: string): ts.Program {
  const host: ts.ParseConfigFileHost = {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: ({ messageText }) => {
      throw new Error(ts.flattenDiagnosticMessageText(messageText, '\n'));
    },
  };
  const config = ts.getParsedCommandLineOfConfigFile(configFile, {}, host);
  if (!config) throw new Error(`${configFile} cannot be read.`);
  const files = config.fileNames.filter((file) => file.endsWith('.ts') && !isSpec.test(file));
  return ts.createProgram(files, config.options);
}

/** The path of a source from the root of the repository. */
export function pathOf({ fileName }: ts.SourceFile): string {
  return relative(process.cwd(), fileName);
}
