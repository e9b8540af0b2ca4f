import ts from 'typescript';
import { probeAt, type Probe } from './probes.js';

/** A small change of a source file that its specs should notice. */
export interface Mutation {
  readonly path: string;
  /** What is done: `in SQL "AND team_id = $1" becomes ""`. */
  readonly what: string;
  /** From 1. */
  readonly line: number;
  /** Where the function begins that has to run for the change to be noticed. */
  readonly probe: Probe;
  /** The whole file with the change in it. */
  readonly text: string;
}

interface Change {
  readonly what: string;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

const operators = new Map<ts.SyntaxKind, string>([
  [ts.SyntaxKind.LessThanToken, '<='],
  [ts.SyntaxKind.LessThanEqualsToken, '<'],
  [ts.SyntaxKind.GreaterThanToken, '>='],
  [ts.SyntaxKind.GreaterThanEqualsToken, '>'],
  [ts.SyntaxKind.EqualsEqualsEqualsToken, '!=='],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, '==='],
  [ts.SyntaxKind.AmpersandAmpersandToken, '||'],
  [ts.SyntaxKind.BarBarToken, '&&'],
  [ts.SyntaxKind.PlusToken, '-'],
  [ts.SyntaxKind.MinusToken, '+'],
]);

/** In SQL, a whole statement or a condition: predicates, locks, order and comparisons. */
const statements = /\b(?:SELECT|INSERT|UPDATE|DELETE)\b|\b[a-z_.]+ (?:=|<>|<=?|>=?) (?:ANY )?\(?\$\d/;
const compared = String.raw`(?:=|<>|<=?|>=?) (?:ANY )?(?:\$\d+|\([^()]*\)|'[^']*'|[a-z_.]+(?:\([^()]*\))?)(?:::[a-z]+(?:\[\])?)?`;
const predicate = String.raw`(?:NOT )?[a-z_.]+ (?:${compared}|IN \([^()]*\)|IS (?:NOT )?NULL)`;
const predicateEnd = String.raw`(?=\s*(?:$|[)\n,;\`']|\$\{|(?:AND|OR|ORDER|GROUP|FOR|LIMIT|OFFSET|RETURNING|UNION|THEN)\b))`;
/**
 * A dropped predicate is one that always holds, so that its parameters keep their types: PostgreSQL refuses a statement
 * with a parameter that is nowhere used, and any spec would notice that.
 */
const holds = (found: string) => `(${found} OR true)`;
const inStatements: readonly { readonly pattern: RegExp; readonly replace: (found: string) => string }[] = [
  { pattern: new RegExp(`(?<=(?: AND|WHERE) )${predicate}${predicateEnd}`, 'g'), replace: holds },
  { pattern: new RegExp(`(?<=['\`])${predicate}(?= AND )`, 'g'), replace: holds },
  { pattern: / FOR (?:NO KEY )?UPDATE(?: SKIP LOCKED)?/g, replace: () => '' },
  { pattern: / (?:<=|>=) /g, replace: (found) => found.replace('=', '') },
  { pattern: / (?:<|>) /g, replace: (found) => `${found.trimEnd()}= ` },
  { pattern: / ORDER BY [a-z_.]+(?=[ )`]|$)/g, replace: (found) => `${found} DESC` },
];

/**
 * Calls of TypeORM's entity manager; with `where` among their options, or the criteria themselves, behind the entity.
 */
const repositoryCalls =
  /\.(?:find|findOne|findOneOrFail|exists|count|(?:find|findOne|exists|count)By|findOneByOrFail|update|delete)$/;

/**
 * All mutations of a file, in the order of its lines. What only words of a message or a log line differ in is left out.
 */
export function mutationsOf(path: string, text: string): Mutation[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const changes: Change[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node) || ts.isDecorator(node) || isTold(node)) return;
    changes.push(...changesOf(node, file));
    ts.forEachChild(node, visit);
  };
  visit(file);
  return changes
    .toSorted((one, other) => one.start - other.start)
    .map(({ what, start, end, replacement }) => ({
      path,
      what,
      line: file.getLineAndCharacterOfPosition(start).line + 1,
      probe: probeAt(file, start),
      text: text.slice(0, start) + replacement + text.slice(end),
    }));
}

/** A thrown error, or a line of the log: which words it has is no rule. */
function isTold(node: ts.Node): boolean {
  return ts.isNewExpression(node)
    ? /Error|Failed$/.test(node.expression.getText())
    : ts.isCallExpression(node) && /logger\./.test(node.expression.getText());
}

function changesOf(node: ts.Node, file: ts.SourceFile): Change[] {
  const change = (what: string, of: ts.Node, replacement: string): Change => ({
    what,
    start: of.getStart(file),
    end: of.getEnd(),
    replacement,
  });
  if (ts.isBinaryExpression(node)) {
    const [is, becomes] = [node.operatorToken.getText(file), operators.get(node.operatorToken.kind)];
    if (becomes === undefined || ofText(node)) return [];
    return [change(`${is} becomes ${becomes} in ${firstLine(node, file)}`, node.operatorToken, becomes)];
  }
  if (ts.isCallExpression(node)) return criteriaOf(node).flatMap((criteria) => dropped(criteria, file));
  if (ts.isIfStatement(node))
    return [change(`${firstLine(node.expression, file)} never holds`, node.expression, 'false')];
  if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken) {
    return [change('! is dropped', node, `(${node.operand.getText(file)})`)];
  }
  if (ts.isExpressionStatement(node) && isStep(node.expression))
    return [change(`${firstLine(node, file)} is dropped`, node, ';')];
  if (ts.isStringLiteralLike(node) || ts.isTemplateLiteralToken(node)) return statementChanges(node, file);
  return [];
}

/** What is waited for, and what throws where a caller may not do this: `requirePermission(…)`. */
function isStep(expression: ts.Expression): boolean {
  return (
    ts.isAwaitExpression(expression) ||
    (ts.isCallExpression(expression) && /^(?:this\.)?require[A-Z]/.test(expression.getText()))
  );
}

/** The options and the criteria of a call such as `manager.findOne(Row, { where: { id, teamId }, lock })`. */
function criteriaOf({ expression, arguments: [, options] }: ts.CallExpression): ts.ObjectLiteralExpression[] {
  if (!repositoryCalls.test(expression.getText()) || !options || !ts.isObjectLiteralExpression(options)) return [];
  const where = options.properties.find((property) => property.name?.getText() === 'where');
  if (!where) return [options];
  return ts.isPropertyAssignment(where) && ts.isObjectLiteralExpression(where.initializer)
    ? [where.initializer, options]
    : [options];
}

/** Each property of criteria that have another one, and `lock` of options. */
function dropped({ properties }: ts.ObjectLiteralExpression, file: ts.SourceFile): Change[] {
  const areOptions = properties.some(({ name }) => name?.getText() === 'where');
  return properties.flatMap((property, at) => {
    if (properties.length < 2 || (areOptions && property.name?.getText() !== 'lock')) return [];
    const [start, end] =
      at > 0
        ? [properties[at - 1]?.getEnd() ?? 0, property.getEnd()]
        : [property.getStart(file), properties[1]?.getStart(file) ?? 0];
    return [
      {
        what: `${firstLine(property, file)} is dropped of the criteria of ${firstLine(property.parent.parent, file)}`,
        start,
        end,
        replacement: '',
      },
    ];
  });
}

function firstLine(node: ts.Node, file: ts.SourceFile): string {
  const [first = '', ...others] = node.getText(file).split('\n');
  return others.length > 0 ? `${first} …` : first;
}

/** `'a' + b` joins texts. */
function ofText({ left, right }: ts.BinaryExpression): boolean {
  return [left, right].some((side) => ts.isStringLiteralLike(side) || ts.isTemplateExpression(side));
}

function statementChanges(node: ts.Node, file: ts.SourceFile): Change[] {
  const start = node.getStart(file);
  const text = node.getText(file);
  const whole = ts.isTemplateLiteralToken(node) ? templateOf(node).getText(file) : text;
  if (!statements.test(whole)) return [];
  return inStatements.flatMap(({ pattern, replace }) =>
    [...text.matchAll(pattern)].map((found) => ({
      what: `in SQL "${found[0].trim()}" becomes "${replace(found[0]).trim()}"`,
      start: start + found.index,
      end: start + found.index + found[0].length,
      replacement: replace(found[0]),
    })),
  );
}

function templateOf(node: ts.Node): ts.Node {
  for (let at = node; ; at = at.parent)
    if (ts.isTemplateExpression(at) || ts.isNoSubstitutionTemplateLiteral(at)) return at;
}
