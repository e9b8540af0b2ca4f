import { describe, expect, it } from '@jest/globals';
import { declaredAgain, missingNames, missingPasswords, missingPieces } from './services.js';

const processes = [{ name: 'harbour', variables: ['HOST', 'ATOLL_TIDES'] }];
const stanza = { command: ['node', 'dist/apps/harbour/src/main.js'], environment: { ATOLL_TIDES: null } };
const documentation = 'The variables `HOST` and `ATOLL_TIDES`.';

describe('the check of services', () => {
  it('is content with a service that compose starts and configures, and the documentation describes', () => {
    expect(missingPieces(processes, { harbour: stanza }, documentation)).toEqual([]);
    const nats = { environment: { ATOLL_NATS_PASSWORD_HARBOUR: null } };
    expect(missingPasswords(['harbour'], nats, 'for name in ATOLL_NATS_PASSWORD_{GATEWAY,HARBOUR}')).toEqual([]);
  });

  it('names a variable that is declared in several places, however', () => {
    const decorator = "  @Variable('ATOLL_TIDES')\n  @IsString()\n  tides: string = '';\n";
    const property = "  @IsString()\n  ATOLL_TIDES: string = '';\n";
    const shared = "  return setting(\n    'ATOLL_TIDES',\n    IsString(),\n  );\n";
    for (const text of [decorator, property, shared]) {
      expect(declaredAgain(new Map([['quay.ts', text]]))).toEqual([]);
      expect(
        declaredAgain(
          new Map([
            ['quay.ts', text],
            ['dock.ts', property],
          ]),
        ),
      ).toEqual(['ATOLL_TIDES is declared more than once: quay.ts, dock.ts']);
    }
  });

  it('names what a new service lacks', () => {
    expect(missingPieces(processes, {}, documentation)).toEqual(['docker-compose.yml: harbour has no stanza']);
    expect(missingPieces(processes, { harbour: {} }, '')).toEqual([
      'docker-compose.yml: the command of harbour must run dist/apps/harbour/src/main.js',
      'docker-compose.yml: harbour is not passed ATOLL_TIDES',
      'docs/operations.md: HOST of harbour is not described',
      'docs/operations.md: ATOLL_TIDES of harbour is not described',
    ]);
    expect(missingPasswords(['dry-dock'], { environment: {} }, 'ATOLL_NATS_PASSWORD_{GATEWAY,TEAMS}')).toEqual([
      'docker-compose.yml: nats is not passed ATOLL_NATS_PASSWORD_DRY_DOCK',
      'docker-compose.yml: the commands at the top make no ATOLL_NATS_PASSWORD_DRY_DOCK',
    ]);
    expect(missingNames(['harbour', 'quay'], ['quay'])).toEqual([
      'libs/service-names/src/platform-services.ts: harbour is missing',
    ]);
  });
});
