import { describe, expect, it } from '@jest/globals';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import fc from 'fast-check';
import { NewImageObject } from '@atoll/contracts/teams';
import { runs } from '@atoll/testing';
import { coversImage, normalisedImage, parseImageReference, type ImageReference } from './image-reference.js';

const digest = `sha256:${'0123456789abcdef'.repeat(4)}`;

function parsed(text: string): ImageReference {
  const reference = parseImageReference(text);
  if (!reference) throw new Error(`${text} should be a reference`);
  return reference;
}

describe('an image reference', () => {
  it.each([
    ['nginx', 'docker.io/library/nginx:latest'],
    ['nginx:1.29', 'docker.io/library/nginx:1.29'],
    ['library/nginx', 'docker.io/library/nginx:latest'],
    ['docker.io/nginx', 'docker.io/library/nginx:latest'],
    ['index.docker.io/library/nginx', 'docker.io/library/nginx:latest'],
    ['Docker.IO/nginx', 'docker.io/library/nginx:latest'],
    ['nvidia/cuda:13.0-base', 'docker.io/nvidia/cuda:13.0-base'],
    ['nvcr.io/nvidia/pytorch:26.01-py3', 'nvcr.io/nvidia/pytorch:26.01-py3'],
    ['localhost/model', 'localhost/model:latest'],
    ['localhost:5000/model:v1', 'localhost:5000/model:v1'],
    ['registry:5000/model', 'registry:5000/model:latest'],
    ['[2001:db8::1]:5000/model', '[2001:db8::1]:5000/model:latest'],
    ['docker.io.evil.com/nginx', 'docker.io.evil.com/nginx:latest'],
    ['docker.io/docker.io/nginx', 'docker.io/docker.io/nginx:latest'],
    ['registry:5000', 'docker.io/library/registry:5000'],
    [`nginx@${digest}`, `docker.io/library/nginx@${digest}`],
    [`nginx:1.29@${digest}`, `docker.io/library/nginx:1.29@${digest}`],
    ['a__b/c-d---e', 'docker.io/a__b/c-d---e:latest'],
  ])('%s means %s', (text, meaning) => expect(normalisedImage(parsed(text))).toBe(meaning));

  it.each([
    '',
    ' nginx',
    'nginx ',
    'Nginx',
    'Host/nginx',
    'nginx:',
    'nginx:-1',
    `nginx:${'a'.repeat(129)}`,
    'nginx@latest',
    'nginx@sha256:abc',
    `nginx@${digest}@${digest}`,
    '/nginx',
    'nginx/',
    'a//b',
    '../nginx',
    'docker.io/',
    'user@host/nginx',
    'https://docker.io/nginx',
    'docker.io/nginx?x',
    'dоcker.io/nginx',
    '-host.example/nginx',
    '[a]/nginx',
    '[a]:5000/nginx',
    'f'.repeat(64),
    `a/${'b'.repeat(255)}`,
  ])('%j is refused', (text) => expect(parseImageReference(text)).toBeNull());

  it('law: normalising twice is normalising once', () => {
    const part = fc.stringMatching(/^[a-z0-9]{1,8}$/);
    const host = fc.constantFrom(
      '',
      'docker.io/',
      'index.docker.io/',
      'localhost/',
      'localhost:5000/',
      'nvcr.io/',
      'Host.Example/',
      '[::1]:5000/',
    );
    const path = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
    const tag = fc.oneof(fc.constant(''), fc.stringMatching(/^:\w[\w.-]{0,12}$/));
    const suffix = fc.constantFrom('', `@${digest}`);
    fc.assert(
      fc.property(host, path, tag, suffix, (...parts) => {
        const once = normalisedImage(parsed(parts.join('')));
        expect(normalisedImage(parsed(once))).toBe(once);
      }),
    );
  });

  it('law: any text is read or refused, and what is read normalises to what is read again', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'B', '0', '.', ':', '/', '@', '-', '_', '[', ']', 'localhost', 'é') }),
        (text) => {
          const reference = parseImageReference(text);
          if (!reference) return;
          const once = normalisedImage(reference);
          expect(normalisedImage(parsed(once))).toBe(once);
        },
      ),
      runs(2000),
    );
  });
});

describe('the pattern of references in the OpenAPI document', () => {
  const accepted = (reference: string): boolean =>
    validateSync(plainToInstance(NewImageObject, { name: 'a', reference }), { skipMissingProperties: true }).length ===
    0;

  it('law: takes every text that is read as a reference, but for what is too long', () => {
    const any = fc.constantFrom('a', 'B', '0', '.', ':', '/', '@', '-', '_', '[', ']', 'localhost', `@${digest}`, 'é');
    const usual = fc.constantFrom('a', '.', '/', '_', ':', '0');
    for (const character of [any, usual]) {
      fc.assert(
        fc.property(fc.string({ unit: character, minLength: 1, maxLength: 12 }), (text) => {
          expect([text, accepted(text)]).toEqual([text, parseImageReference(text) !== null]);
        }),
        runs(3000),
      );
    }
  });

  it('reads a text of the longest length at once, whatever stands in it', () => {
    for (const part of ['a', 'a-', 'a.', 'a_', 'a/', 'a:', 'A']) expect(accepted(`${part.repeat(255)}!`)).toBe(false);
  });
});

describe('a reference of a policy', () => {
  it.each([
    ['nginx', 'nginx', true],
    ['nginx', 'docker.io/library/nginx:1.29', true],
    ['nginx', `nginx@${digest}`, true],
    ['nginx:latest', 'nginx', true],
    ['nginx:1.29', 'nginx:1.29', true],
    [`nginx@${digest}`, `nginx:1.29@${digest}`, true],
    ['nginx', 'docker.io.evil.com/nginx', false],
    ['nginx', 'evil.com/library/nginx', false],
    ['nginx', 'evil/nginx', false],
    ['nginx', 'nginx2', false],
    ['nginx', 'docker.io/nginx/library', false],
    ['nginx:1.29', 'nginx', false],
    ['nginx:1.29', 'nginx:1.29.1', false],
    ['nginx:1.29', `nginx:1.29@${digest}`, false],
    [`nginx@${digest}`, 'nginx', false],
    ['localhost/nginx', 'nginx', false],
  ])('%s against the image %s: %s', (allowed, image, verdict) =>
    expect(coversImage(parsed(allowed), parsed(image))).toBe(verdict),
  );
});
