import { globSync, readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';

/** Commands in which the engine, and not a program in the container, sends a signal. The bare command may be named. */
const signals = /\bdocker\b(?:(?!\b(?:exec|run)\b)[^`\n;&|]|\\\n)*\bkill\b(?!`).*/g;

it.each([
  'docker kill nats',
  'docker container kill nats',
  'docker compose kill --signal HUP nats',
  'docker compose --file docker-compose.yml kill nats',
  'docker compose -p atoll kill nats',
  'docker compose \\\n  kill nats',
  'docker compose exec nats true && docker kill nats',
  'docker compose ps --quiet | xargs docker kill',
])('a signal by the engine: %s', (command) => {
  expect(command.match(signals)).not.toBeNull();
});

it.each([
  'docker compose exec -T nats kill -HUP 1',
  'docker compose run --rm tools kill 1',
  'docker compose ps; kill 1',
  '`docker kill`, neither',
])('none by the engine: %s', (command) => {
  expect(command.match(signals)).toBeNull();
});

it('no command for operators signals a container through the engine, which then no longer restarts it', () => {
  const files = globSync(['README.md', 'docs/**/*.md', 'docker-compose.yml', 'deploy/*.yml']);
  const found = files.flatMap((file) =>
    (readFileSync(file, 'utf8').match(signals) ?? []).map((command) => `${file}: ${command}`),
  );
  expect(found).toEqual([]);
});
