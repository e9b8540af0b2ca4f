import ts from 'typescript';

/**
 * What an expression of the source may be at run time: each text, or the reason why that cannot be told from the
 * source.
 */
export type Texts = { texts: string[] } | { unread: string };

/** What the parameters of the functions that are being read stand for. */
export type Bindings = ReadonlyMap<ts.Symbol, Texts>;

const none: Bindings = new Map();
/** More than any statement here has; beyond it a statement is too clever to be read. */
const maxTexts = 200;
const maxDepth = 30;

/**
 * Reads from the source which texts an expression can be: literals, templates, conditions, constants, and functions
 * that return such. A value whose type is a list of literals stands for each of them; a number that is not known stands
 * for 1.
 */
export class SqlTexts {
  constructor(private readonly checker: ts.TypeChecker) {}

  of(expression: ts.Expression, bindings: Bindings = none, depth = 0): Texts {
    const node = withoutWrapping(expression);
    if (depth > maxDepth) return unread(node, 'it refers to itself');
    const next = (other: ts.Expression, bound = bindings) => this.of(other, bound, depth + 1);
    if (ts.isStringLiteralLike(node)) return { texts: [node.text] };
    if (ts.isTemplateExpression(node)) {
      return join([
        { texts: [node.head.text] },
        ...node.templateSpans.flatMap((span) => [next(span.expression), { texts: [span.literal.text] }]),
      ]);
    }
    if (ts.isConditionalExpression(node)) return either([next(node.whenTrue), next(node.whenFalse)]);
    if (ts.isBinaryExpression(node)) return this.ofBinary(node, next);
    if (ts.isCallExpression(node)) return this.ofCall(node, bindings, depth);
    return this.ofName(node, bindings, next);
  }

  private ofBinary(node: ts.BinaryExpression, next: (other: ts.Expression) => Texts): Texts {
    switch (node.operatorToken.kind) {
      case ts.SyntaxKind.PlusToken:
        return join([next(node.left), next(node.right)]);
      case ts.SyntaxKind.QuestionQuestionToken:
      case ts.SyntaxKind.BarBarToken:
        return either([next(node.left), next(node.right)]);
      case ts.SyntaxKind.AmpersandAmpersandToken:
        return next(node.right);
      default:
        return this.ofType(node);
    }
  }

  private ofName(
    node: ts.Expression,
    bindings: Bindings,
    next: (other: ts.Expression, bound?: Bindings) => Texts,
  ): Texts {
    const symbol = this.symbolOf(node);
    const bound = symbol && bindings.get(symbol);
    if (bound) return bound;
    const byType = this.ofType(node);
    if ('texts' in byType) return byType;
    const ofLoop = this.ofLoop(node, next);
    if (ofLoop) return ofLoop;
    const [declaration] = symbol?.declarations ?? [];
    if (declaration && ts.isVariableDeclaration(declaration) && declaration.initializer)
      return next(declaration.initializer, none);
    if (declaration && ts.isPropertyDeclaration(declaration) && declaration.initializer)
      return next(declaration.initializer, none);
    if (declaration && ts.isPropertyAssignment(declaration)) return next(declaration.initializer, none);
    if (ts.isElementAccessExpression(node)) return this.ofMember(node, next);
    return byType;
  }

  /** `table[key]`, of a constant table: each of its entries. */
  private ofMember(node: ts.ElementAccessExpression, next: (other: ts.Expression, bound?: Bindings) => Texts): Texts {
    const declaration = this.symbolOf(node.expression)?.valueDeclaration;
    if (!declaration || !ts.isVariableDeclaration(declaration) || !declaration.initializer) return this.ofType(node);
    const table = withoutWrapping(declaration.initializer);
    if (!ts.isObjectLiteralExpression(table)) return this.ofType(node);
    return either(
      table.properties.map((entry) =>
        ts.isPropertyAssignment(entry) ? next(entry.initializer, none) : this.ofType(node),
      ),
    );
  }

  private ofCall(node: ts.CallExpression, bindings: Bindings, depth: number): Texts {
    const joined = this.ofJoin(node, bindings, depth);
    if (joined) return joined;
    const declaration = this.checker.getResolvedSignature(node)?.declaration;
    if (!declaration || !('body' in declaration) || !declaration.body) return this.ofType(node);
    const bound = this.bind(declaration, node.arguments, bindings, depth);
    return either(returned(declaration.body).map((expression) => this.of(expression, bound, depth + 1)));
  }

  /** What the parameters of a function stand for in a call of it. */
  bind(of: ts.SignatureDeclaration, values: readonly ts.Expression[], bindings: Bindings = none, depth = 0): Bindings {
    const bound = new Map<ts.Symbol, Texts>();
    const set = (name: ts.Node, value: ts.Expression | undefined) => {
      const symbol = this.checker.getSymbolAtLocation(name);
      if (symbol && value) bound.set(symbol, this.of(value, bindings, depth + 1));
    };
    of.parameters.forEach((parameter, index) => {
      const value = values[index] ?? parameter.initializer;
      if (!ts.isObjectBindingPattern(parameter.name)) return void set(parameter.name, value);
      for (const element of parameter.name.elements) {
        const name = (element.propertyName ?? element.name).getText();
        set(element.name, (value && propertyOf(withoutWrapping(value), name)) ?? element.initializer);
      }
    });
    return bound;
  }

  /**
   * `list.map((one) => text).join(separator)`: of a list that is written out, each of its elements; of any other, one
   * element.
   */
  private ofJoin(node: ts.CallExpression, bindings: Bindings, depth: number): Texts | undefined {
    const [separator] = node.arguments;
    if (!isMethodCall(node, 'join') || !separator) return undefined;
    const between = this.of(separator, bindings, depth + 1);
    const all = (texts: Texts[]) => join(texts.flatMap((one, no) => (no === 0 ? [one] : [between, one])));
    const joined = this.constantOf(node.expression.expression);
    if (ts.isArrayLiteralExpression(joined)) {
      const lists = this.listsOf(joined);
      return lists && either(lists.map((list) => all(list.map((element) => this.of(element, bindings, depth + 1)))));
    }
    const [each] = ts.isCallExpression(joined) ? joined.arguments : [];
    if (!ts.isCallExpression(joined) || !isMethodCall(joined, 'map') || !each || !ts.isArrowFunction(each))
      return undefined;
    const from = this.constantOf(joined.expression.expression);
    const elements = ts.isArrayLiteralExpression(from) ? [...from.elements] : [undefined];
    return all(
      elements.map((element) => {
        const bound = new Map([...bindings, ...(element ? this.bind(each, [element], bindings, depth) : none)]);
        return either(returned(each.body).map((expression) => this.of(expression, bound, depth + 1)));
      }),
    );
  }

  /** The lists that a list may be that is written out, where `...(condition ? [more] : [])` is part of it or is not. */
  private listsOf(list: ts.ArrayLiteralExpression): ts.Expression[][] | undefined {
    let lists: ts.Expression[][] = [[]];
    for (const element of list.elements) {
      const parts = ts.isSpreadElement(element) ? branchesOf(withoutWrapping(element.expression)) : [[element]];
      if (!parts) return undefined;
      lists = lists.flatMap((before) => parts.map((part) => [...before, ...part]));
    }
    return lists;
  }

  /** What a name stands for that is declared with a value, else the expression itself. */
  private constantOf(expression: ts.Expression): ts.Expression {
    const node = withoutWrapping(expression);
    const declaration = ts.isIdentifier(node) ? this.symbolOf(node)?.valueDeclaration : undefined;
    const value = declaration && ts.isVariableDeclaration(declaration) ? declaration.initializer : undefined;
    return value ? withoutWrapping(value) : node;
  }

  /** `one.property` in a loop over a list that is written out: that of each of its elements. */
  private ofLoop(node: ts.Expression, next: (other: ts.Expression, bound?: Bindings) => Texts): Texts | undefined {
    if (!ts.isPropertyAccessExpression(node)) return undefined;
    const declaration = this.symbolOf(node.expression)?.valueDeclaration;
    const loop = declaration?.parent.parent;
    if (!loop || !ts.isForOfStatement(loop)) return undefined;
    const list = this.constantOf(loop.expression);
    if (!ts.isArrayLiteralExpression(list)) return undefined;
    const values = list.elements.map((element) => propertyOf(withoutWrapping(element), node.name.text));
    return either(values.map((value) => (value ? next(value, none) : this.ofType(node))));
  }

  private symbolOf(node: ts.Expression): ts.Symbol | undefined {
    const symbol = ts.isShorthandPropertyAssignment(node.parent)
      ? this.checker.getShorthandAssignmentValueSymbol(node.parent)
      : this.checker.getSymbolAtLocation(ts.isPropertyAccessExpression(node) ? node.name : node);
    return symbol && symbol.flags & ts.SymbolFlags.Alias ? this.checker.getAliasedSymbol(symbol) : symbol;
  }

  private ofType(node: ts.Expression): Texts {
    const type = this.checker.getTypeAtLocation(node);
    const parts = type.isUnion() ? type.types : [type];
    const texts = parts.flatMap((part) => {
      if (part.isStringLiteral() || part.isNumberLiteral()) return [String(part.value)];
      return part.flags & (ts.TypeFlags.Number | ts.TypeFlags.BigInt | ts.TypeFlags.BigIntLiteral) ? ['1'] : [];
    });
    return texts.length === parts.length ? { texts } : unread(node, this.checker.typeToString(type));
  }
}

function withoutWrapping(node: ts.Expression): ts.Expression {
  if (
    ts.isParenthesizedExpression(node) ||
    ts.isAsExpression(node) ||
    ts.isSatisfiesExpression(node) ||
    ts.isNonNullExpression(node)
  ) {
    return withoutWrapping(node.expression);
  }
  // `String.raw`, and tags that only help editors, change nothing that matters here.
  return ts.isTaggedTemplateExpression(node) ? node.template : node;
}

/** The expressions that a function returns. */
function returned(body: ts.ConciseBody): ts.Expression[] {
  if (!ts.isBlock(body)) return [body];
  const found: ts.Expression[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isReturnStatement(node) && node.expression) found.push(node.expression);
    if (!ts.isFunctionLike(node)) ts.forEachChild(node, visit);
  };
  ts.forEachChild(body, visit);
  return found;
}

function isMethodCall(
  node: ts.CallExpression,
  name: string,
): node is ts.CallExpression & { expression: ts.PropertyAccessExpression } {
  return ts.isPropertyAccessExpression(node.expression) && node.expression.name.text === name;
}

/** The elements that a spread list may bring, by the branches of its condition. */
function branchesOf(node: ts.Expression): ts.Expression[][] | undefined {
  if (ts.isArrayLiteralExpression(node)) return [[...node.elements]];
  if (!ts.isConditionalExpression(node)) return undefined;
  const branches = [node.whenTrue, node.whenFalse].map((branch) => branchesOf(withoutWrapping(branch)));
  return branches.every((branch) => branch !== undefined) ? branches.flat() : undefined;
}

/** The value that an object that is written out gives a property. */
function propertyOf(node: ts.Expression, name: string): ts.Expression | undefined {
  if (!ts.isObjectLiteralExpression(node)) return undefined;
  for (const property of node.properties) {
    if (ts.isPropertyAssignment(property) && property.name.getText() === name) return property.initializer;
    if (ts.isShorthandPropertyAssignment(property) && property.name.text === name) return property.name;
  }
  return undefined;
}

function unread(node: ts.Node, why: string): Texts {
  return { unread: `${node.getText().slice(0, 60)} (${why})` };
}

function either(all: readonly Texts[]): Texts {
  const fault = all.find((one) => 'unread' in one);
  if (fault) return fault;
  return limited(all.flatMap((one) => ('texts' in one ? one.texts : [])));
}

function join(all: readonly Texts[]): Texts {
  let joined: Texts = { texts: [''] };
  for (const one of all) {
    if ('unread' in one) return one;
    joined = limited(joined.texts.flatMap((before) => one.texts.map((after) => before + after)));
    if ('unread' in joined) return joined;
  }
  return joined;
}

function limited(texts: readonly string[]): Texts {
  const different = [...new Set(texts)];
  return different.length > maxTexts ? { unread: `more than ${maxTexts} texts` } : { texts: different };
}
