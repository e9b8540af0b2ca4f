import ts from 'typescript';

/** What a name of money, or of an exact quantity, ends in. `percent` is no money, and `…Count` none either. */
const money = /(?:^#?|[_a-z])(?:[Cc]ost|[Pp]rice|[Aa]mount|[Ee]ffect|[Mm]oney|Nano|_nano)s?$/;
const floatInSql = /\b(?:double precision|float[48]?)\b|::\s*real\b|\breal\s*(?:,|\)|NOT NULL|DEFAULT)/i;

/** Excuses the line below it, and says why: `// Exact as a number: a count.` */
const excuse = /^\s*\/\/ Exact as a number: \S/;

export interface MoneyFault {
  line: number;
  fault: string;
}

/**
 * No float touches money: what is named as money is a bigint or decimal text, nothing exact is turned into a number,
 * and no SQL names a floating-point type. Where a quantity becomes a JSON number at the very edge, a comment in the
 * line above says so. One that excuses nothing is a fault too.
 */
export function moneyFaults(source: ts.SourceFile, checker: ts.TypeChecker): MoneyFault[] {
  const found: MoneyFault[] = [];
  const visit = (node: ts.Node): void => {
    const fault = faultOf(node, checker);
    if (fault !== undefined)
      found.push({ line: source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1, fault });
    ts.forEachChild(node, visit);
  };
  visit(source);
  const excused = source.text.split('\n').flatMap((text, above) => (excuse.test(text) ? [above + 2] : []));
  const isExcused = new Set(excused);
  const isFault = new Set(found.map(({ line }) => line));
  return [
    ...found.filter(({ line }) => !isExcused.has(line)),
    ...excused
      .filter((line) => !isFault.has(line))
      .map((line) => ({ line, fault: 'This needs no excuse: take the comment above it away.' })),
  ];
}

function faultOf(node: ts.Node, checker: ts.TypeChecker): string | undefined {
  if (ts.isCallExpression(node)) return conversionOf(node, checker);
  if (ts.isStringLiteral(node) || ts.isTemplateLiteralToken(node)) {
    return floatInSql.test(node.text)
      ? 'Money and quantities are bigint or numeric in SQL, never a floating-point type.'
      : undefined;
  }
  const name = namedBy(node);
  if (name === undefined || !money.test(name.text) || !holdsNumber(checker.getTypeAtLocation(name))) return undefined;
  return `${name.text} is money or an exact quantity, and a number is a float: make it a bigint or decimal text.`;
}

/** The name that a node gives to a value, or takes one by. */
function namedBy(node: ts.Node): ts.Identifier | ts.PrivateIdentifier | undefined {
  if (ts.isPropertyAssignment(node)) return ts.isIdentifier(node.initializer) ? node.initializer : undefined;
  const isNaming =
    ts.isVariableDeclaration(node) ||
    ts.isParameter(node) ||
    ts.isBindingElement(node) ||
    ts.isShorthandPropertyAssignment(node) ||
    ts.isPropertyDeclaration(node) ||
    ts.isPropertySignature(node);
  return isNaming && (ts.isIdentifier(node.name) || ts.isPrivateIdentifier(node.name)) ? node.name : undefined;
}

function conversionOf(call: ts.CallExpression, checker: ts.TypeChecker): string | undefined {
  const [argument] = call.arguments;
  if (!argument || !ts.isIdentifier(call.expression) || !/^(Number|parseFloat)$/.test(call.expression.text))
    return undefined;
  const isExact = (checker.getTypeAtLocation(argument).flags & ts.TypeFlags.BigIntLike) !== 0;
  return isExact ? 'A bigint is exact, and this makes a float of it.' : undefined;
}

function holdsNumber(type: ts.Type): boolean {
  if (type.isUnion()) return type.types.some(holdsNumber);
  return (type.flags & ts.TypeFlags.NumberLike) !== 0;
}
