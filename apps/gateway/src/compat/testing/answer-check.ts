import type { OpenAPIObject } from '@nestjs/swagger';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { walk } from '../../openapi/operations.js';

/**
 * Checks answers against an OpenAPI document: each has a declared status, and the fields that are declared for it and
 * no others.
 */
export class AnswerCheck {
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false, code: { optimize: false } });
  readonly #validators = new Map<string, ValidateFunction>();
  readonly #templates: readonly (readonly [pattern: RegExp, path: string])[];

  constructor(private readonly document: OpenAPIObject) {
    const closed = structuredClone(document);
    for (const part of walk(closed.components?.schemas) as Generator<{
      type?: unknown;
      properties?: object;
      additionalProperties?: unknown;
    }>) {
      if (part.type === 'object' && part.properties) part.additionalProperties ??= false;
    }
    this.#ajv.addSchema(closed, 'document');
    const literalFirst = Object.keys(document.paths).toSorted(
      (one, other) => one.split('{').length - other.split('{').length,
    );
    this.#templates = literalFirst.map((path) => [new RegExp(`^${path.replace(/\{[^}]+\}/g, '[^/]+')}$`), path]);
  }

  /** What is wrong with the answer, in words; null where it is as declared. */
  fault(method: string, url: string, status: number, body: unknown): string | null {
    const [bare = ''] = url.split('?', 1);
    const path = this.#templates.find(([pattern]) => pattern.test(bare))?.[1];
    if (path === undefined) return status === 501 || status === 401 ? null : `no operation at ${bare}`;
    const operation = `/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/${method.toLowerCase()}`;
    const declared = this.document.paths[path]?.[method.toLowerCase() as 'get']?.responses[String(status)];
    if (declared === undefined) return status === 405 ? null : `${method} ${path} does not declare ${status}`;
    const validate = this.#validator(`${operation}/responses/${status}/content/application~1json/schema`);
    return validate(body) ? null : `${method} ${path}, ${status}: ${this.#ajv.errorsText(validate.errors)}`;
  }

  #validator(pointer: string): ValidateFunction {
    let validate = this.#validators.get(pointer);
    if (!validate) {
      const encoded = pointer.split('/').map(encodeURIComponent).join('/');
      validate = this.#ajv.compile({ $ref: `document#${encoded}` });
      this.#validators.set(pointer, validate);
    }
    return validate;
  }
}
