import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';

it.each(['docs/operations.md', 'docker-compose.yml', 'deploy/engine.yml', 'README.md'])(
  'no command for operators signals a container through the engine, which then no longer restarts it: %s',
  (file) => {
    expect(readFileSync(file, 'utf8').match(/\bdocker (compose )?kill\b(?!`).*/g)).toBeNull();
  },
);
