import type { Rule } from 'eslint';
import ts from 'typescript';

/** What a name of money, or of an exact quantity, ends in. `percent` is no money, and `…Count` none either. */
const money = /(?:^|[_a-z])(?:[Cc]ost|[Pp]rice|[Aa]mount|[Ee]ffect|[Mm]oney|Nano|_nano)s?$/;
const floatInSql = /\b(?:double precision|float[48]?)\b|::\s*real\b|\breal\s*(?:,|\)|NOT NULL|DEFAULT)/i;

type Node = Rule.Node;
/** What typescript-eslint's parser gives besides the tree. */
type TypeOf = (node: unknown) => ts.Type;

/**
 * No float touches money: what is named as money is a bigint or decimal text, nothing exact is turned into a number, and no SQL names a
 * floating-point type. Where a quantity becomes a JSON number at the very edge, that one line says so by a disabling comment.
 */
export const exactMoney: Rule.RuleModule = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      number: '{{name}} is money or an exact quantity, and a number is a float: make it a bigint or decimal text.',
      conversion: 'A bigint is exact, and this makes a float of it.',
      sql: 'Money and quantities are bigint or numeric in SQL, never a floating-point type.',
    },
  },
  create(context) {
    const { getTypeAtLocation: typeOf } = context.sourceCode.parserServices as { getTypeAtLocation: TypeOf };
    const checkName = (node: Node & { name: string }) => {
      if (money.test(node.name) && holdsNumber(typeOf(node))) context.report({ node, messageId: 'number', data: { name: node.name } });
    };
    const checkSql = (node: Node, text: string) => {
      if (floatInSql.test(text)) context.report({ node, messageId: 'sql' });
    };
    return {
      'VariableDeclarator > Identifier.id': checkName,
      ':function > Identifier.params': checkName,
      'Property > Identifier.value': checkName,
      'PropertyDefinition > Identifier.key': checkName,
      'PropertyDefinition > PrivateIdentifier.key': checkName,
      'TSPropertySignature > Identifier.key': checkName,
      'TSParameterProperty > Identifier': checkName,
      'CallExpression[callee.name=/^(Number|parseFloat)$/]': (node: Node & { arguments: unknown[] }) => {
        const [argument] = node.arguments;
        if (argument && isBigInt(typeOf(argument))) context.report({ node, messageId: 'conversion' });
      },
      Literal: (node) => {
        if (typeof node.value === 'string') checkSql(node, node.value);
      },
      TemplateElement: (node) => checkSql(node, node.value.raw),
    };
  },
};

function holdsNumber(type: ts.Type): boolean {
  if (type.isUnion()) return type.types.some(holdsNumber);
  return (type.flags & ts.TypeFlags.NumberLike) !== 0;
}

function isBigInt(type: ts.Type): boolean {
  return (type.flags & ts.TypeFlags.BigIntLike) !== 0;
}
