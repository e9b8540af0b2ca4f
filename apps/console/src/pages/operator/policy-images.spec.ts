import { expect, it } from '@jest/globals';
import { imagesOf } from './policy-images.js';

it('an image that is there already keeps its name, and a new one is named by its reference', () => {
  const known = [{ name: 'Training, with CUDA', reference: 'docker.io/library/python:3.13' }];
  expect(imagesOf('docker.io/library/python:3.13, ghcr.io/acme/tools/trainer@sha256:12ab\nnginx', known)).toEqual([
    { name: 'Training, with CUDA', reference: 'docker.io/library/python:3.13' },
    { name: 'trainer', reference: 'ghcr.io/acme/tools/trainer@sha256:12ab' },
    { name: 'nginx', reference: 'nginx' },
  ]);
});

it('of no text there are no images', () => {
  expect(imagesOf(' ,\n', [{ name: 'a', reference: 'a' }])).toEqual([]);
});
