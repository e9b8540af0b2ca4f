import { join, relative } from 'node:path';
import ts from 'typescript';
import { SqlTexts, type Bindings, type Texts } from './sql-texts.js';

/** A call that sends SQL. */
export interface Statement {
  /** The file, from the root of the repository, and the line of the call. */
  file: string;
  line: number;
  texts: Texts;
  /** The type of one row as the call states it; none where it states none. */
  row: ts.Type | undefined;
  call: ts.CallExpression;
}

/**
 * Methods that send SQL: which of their arguments is the text, and whether the type that they take is that of all rows
 * or of one.
 */
const senders: Record<string, { text: number; type: 'rows' | 'row' }> = {
  'EntityManager.query': { text: 0, type: 'rows' },
  'DataSource.query': { text: 0, type: 'rows' },
  'QueryRunner.query': { text: 0, type: 'rows' },
  'Statements.query': { text: 0, type: 'row' },
  'ReservedStatements.query': { text: 0, type: 'row' },
  'Snapshot.query': { text: 0, type: 'row' },
};

/**
 * Every statement that the sources of services send, in the order of the files. Of a function that sends what it is
 * given: what its callers give.
 */
export function findStatements(
  program: ts.Program,
  root: string,
  isOfInterest: (file: string) => boolean,
): Statement[] {
  const checker = program.getTypeChecker();
  const sqlTexts = new SqlTexts(checker);
  const calls = program
    .getSourceFiles()
    .filter(({ fileName }) => isOfInterest(relative(root, fileName)))
    .flatMap((source) => callsIn(source));
  const callersOf = callerIndex(calls, checker);

  const statement = (call: ts.CallExpression, texts: Texts, row: ts.Type | undefined): Statement => {
    const source = call.getSourceFile();
    const line = source.getLineAndCharacterOfPosition(call.getStart()).line + 1;
    return { file: relative(root, source.fileName), line, texts, row, call };
  };
  const typeOf = ([stated]: readonly ts.TypeNode[] = []) => stated && checker.getTypeFromTypeNode(stated);

  /**
   * What the parameters of a function may stand for, by each of its callers; and, where a caller hands on what it was
   * given, by its callers.
   */
  const uses = (of: ts.SignatureDeclaration, levels = 3): { caller: ts.CallExpression; bindings: Bindings }[] =>
    callersOf(of).flatMap((caller) => {
      const bindings = sqlTexts.bind(of, caller.arguments);
      const around = ts.findAncestor(caller, ts.isFunctionLike);
      const isWhole = [...bindings.values()].every((texts) => 'texts' in texts);
      const outer = isWhole || !around || levels === 0 ? [] : uses(around, levels - 1);
      return outer.length === 0
        ? [{ caller, bindings }]
        : outer.map((use) => ({ caller: use.caller, bindings: sqlTexts.bind(of, caller.arguments, use.bindings) }));
    });

  return calls.flatMap((call) => {
    const sender = senderOf(call, checker);
    const text = sender && call.arguments[sender.text];
    if (!text || handsOn(call, text)) return [];
    const row = rowOf(call, sender.type, checker);
    const texts = sqlTexts.of(text);
    const within = ts.findAncestor(call, ts.isFunctionLike);
    if ('texts' in texts || !within) return [statement(call, texts, row)];
    const given = uses(within)
      .filter(({ caller }) => !caller.arguments.some((argument) => handsOn(caller, argument)))
      .map(({ caller, bindings }) => statement(caller, sqlTexts.of(text, bindings), typeOf(caller.typeArguments)));
    const all = given.length > 0 ? given : [statement(call, texts, row)];
    // A library's statements about tables that each service names: the specs of the services run them.
    return call.getSourceFile().fileName.startsWith(join(root, 'libs'))
      ? all.filter((one) => 'texts' in one.texts)
      : all;
  });
}

/**
 * Who calls a function. The type of what is called is dear, so it is looked at only where the call may be one of the
 * function: by its own name, if it has one; by a name that is given to a value from elsewhere; or by no name.
 */
function callerIndex(calls: readonly ts.CallExpression[], checker: ts.TypeChecker) {
  const byName = Map.groupBy(calls, ({ expression }) => nameOf(expression));
  const aliases = new Set(aliasesIn(new Set(calls.map((call) => call.getSourceFile()))));
  const resolved = new Map<string | undefined, Map<ReturnType<typeof calledBy>, ts.CallExpression[]>>();
  const named = (name: string | undefined, of: ts.SignatureDeclaration): ts.CallExpression[] => {
    const known = resolved.get(name) ?? Map.groupBy(byName.get(name) ?? [], (call) => calledBy(call, checker));
    resolved.set(name, known);
    return known.get(of) ?? [];
  };
  return (of: ts.SignatureDeclaration): ts.CallExpression[] => {
    const own = of.name?.getText() ?? (hasName(of.parent) ? of.parent.name.getText() : undefined);
    return [...new Set([own, undefined, ...aliases])].flatMap((name) => named(name, of));
  };
}

/**
 * The function that is called, by the type of what is called alone: to choose among overloads, the compiler would work
 * out the types of all arguments. What has overloads has no body of its own, and is none of those who send statements.
 */
function calledBy({ expression }: ts.CallExpression, checker: ts.TypeChecker) {
  const called = checker.getNonNullableType(checker.getTypeAtLocation(expression));
  const isOfBase = expression.kind === ts.SyntaxKind.SuperKeyword;
  const [signature] = isOfBase ? called.getConstructSignatures() : called.getCallSignatures();
  return signature?.declaration;
}

function nameOf(callee: ts.Expression): string | undefined {
  if (ts.isIdentifier(callee)) return callee.text;
  return ts.isPropertyAccessExpression(callee) ? callee.name.text : undefined;
}

/** What an arrow function may be the value of. */
function hasName(
  node: ts.Node,
): node is ts.VariableDeclaration | ts.PropertyDeclaration | ts.PropertyAssignment | ts.ParameterDeclaration {
  return (
    ts.isVariableDeclaration(node) ||
    ts.isPropertyDeclaration(node) ||
    ts.isPropertyAssignment(node) ||
    ts.isParameter(node)
  );
}

/**
 * Names of values from elsewhere: `import { one as other }`, `const { one: other } = …`, `const other = one`,
 * `{ other: make() }`, `get other()`.
 */
function* aliasesIn(sources: Iterable<ts.SourceFile>): Generator<string> {
  for (const source of sources) {
    const found: string[] = [];
    const visit = (node: ts.Node): void => {
      const isRenamed =
        (ts.isImportSpecifier(node) || ts.isExportSpecifier(node) || ts.isBindingElement(node)) && node.propertyName;
      if (isRenamed || ts.isGetAccessor(node)) found.push(node.name.getText());
      else if (hasName(node) && node.initializer && !ts.isFunctionLike(node.initializer))
        found.push(node.name.getText());
      ts.forEachChild(node, visit);
    };
    visit(source);
    yield* found;
  }
}

/**
 * Whether a call is all that an arrow function does with a text that it is given: the statements are where that
 * function is called.
 */
function handsOn(call: ts.CallExpression, text: ts.Expression): boolean {
  const within = call.parent;
  return ts.isArrowFunction(within) && within.parameters.some(({ name }) => name.getText() === text.getText());
}

function callsIn(node: ts.Node): ts.CallExpression[] {
  const found: ts.CallExpression[] = [];
  const visit = (child: ts.Node): void => {
    if (ts.isCallExpression(child)) found.push(child);
    ts.forEachChild(child, visit);
  };
  visit(node);
  return found;
}

function senderOf(
  call: ts.CallExpression,
  checker: ts.TypeChecker,
): { text: number; type: 'rows' | 'row' } | undefined {
  const callee = call.expression;
  // A function that is handed down to send statements by.
  if (ts.isIdentifier(callee) && callee.text === 'query') return { text: 0, type: 'row' };
  if (!ts.isPropertyAccessExpression(callee) || callee.name.text !== 'query') return undefined;
  const receiver = checker.getTypeAtLocation(callee.expression).getSymbol()?.name ?? '';
  return senders[`${receiver}.query`];
}

function rowOf(call: ts.CallExpression, type: 'rows' | 'row', checker: ts.TypeChecker): ts.Type | undefined {
  const [stated] = call.typeArguments ?? [];
  if (!stated) return undefined;
  const of = checker.getTypeFromTypeNode(stated);
  if (type === 'row') return of;
  // TypeORM returns [rows, count] for UPDATE and DELETE.
  const [rows = of] = checker.isTupleType(of) ? checker.getTypeArguments(of as ts.TypeReference) : [];
  return checker.getIndexTypeOfType(rows, ts.IndexKind.Number);
}
