import type { OpenAPIObject } from '@nestjs/swagger';
import { walk } from './operations.js';

/**
 * OpenAPI 3.1 lets words stand beside a reference: an `allOf` of one, which 3.0 needed for that, becomes the reference.
 * An `enum` that is left beside a pattern says the same twice.
 */
export function tidySchemas(document: OpenAPIObject): void {
  for (const part of walk(document) as Generator<{ allOf?: object[] }>) {
    const [only, ...others] = part.allOf ?? [];
    if (!only || others.length > 0) continue;
    delete part.allOf;
    Object.assign(part, only);
  }
}
