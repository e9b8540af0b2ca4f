/** What a rule of ESLint, and so of oxlint, is given and gives. */
interface Context {
  report(problem: { node: unknown; message: string }): void;
}

/** A form that this code does not use, as a selector of ESLint, and what to do instead. */
const bans = {
  'no-enum': { TSEnumDeclaration: 'Use a union of strings.' },
  'no-export-all': { ExportAllDeclaration: 'Name what you export.' },
  'no-default-export': {
    'ExportDefaultDeclaration, ExportSpecifier[exported.name="default"]': 'Give it a name.',
  },
  'no-import-of-type': { TSImportType: 'Import it at the top.' },
  'no-idle-test': Object.fromEntries(
    [
      'CallExpression[callee.object.name=/^(it|test|describe)$/][callee.property.name=/^(only|skip|todo)$/]',
      'CallExpression[callee.name=/^(xit|xtest|xdescribe|fit|fdescribe)$/]',
    ].map((selector) => [selector, 'A test runs, or is deleted.']),
  ),
};

function ruleOf(forms: Record<string, string>) {
  return {
    create: (context: Context) =>
      Object.fromEntries(
        Object.entries(forms).map(([selector, message]) => [
          selector,
          (node: unknown) => context.report({ node, message }),
        ]),
      ),
  };
}

/** The rules of this code that are a form, each banned: a plugin of oxlint's. */
const plugin = {
  meta: { name: 'atoll' },
  rules: Object.fromEntries(Object.entries(bans).map(([name, forms]) => [name, ruleOf(forms)])),
};

export { plugin as default };
