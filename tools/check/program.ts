import { relative } from 'node:path';
import ts from 'typescript';

const isSource = /^(apps|libs)\/[^/]+\/src\/(?!.*(spec|fixture)\.ts$).*\.ts$/;

/**
 * The sources of apps and libs that a `tsconfig.json` includes, with their types; without specs, and without the
 * components of pages. Tools and configuration files, whose packages declare as many types again, are left out.
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
  const files = config.fileNames.filter((file) => isSource.test(relative(process.cwd(), file)));
  const compiler = ts.createCompilerHost(config.options);
  // No type is declared in a comment.
  compiler.jsDocParsingMode = ts.JSDocParsingMode.ParseNone;
  return ts.createProgram(files, config.options, compiler);
}

/** The path of a source from the root of the repository. */
export function pathOf({ fileName }: ts.SourceFile): string {
  return relative(process.cwd(), fileName);
}
