import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';

it('keeps the engine through all commands for operators, which name no files: .env names them', () => {
  const settingUp = readFileSync('deploy/engine.yml', 'utf8');
  expect(settingUp).toContain('echo "COMPOSE_FILE=docker-compose.yml:deploy/engine.yml" >> .env');
  for (const file of ['deploy/engine.yml', 'docker-compose.yml', 'docs/operations.md', 'README.md'])
    expect(readFileSync(file, 'utf8')).not.toMatch(/docker compose (-f|--file)\b/);
});
