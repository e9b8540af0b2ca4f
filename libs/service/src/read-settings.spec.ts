import { expect, it } from '@jest/globals';
import { WholeNumber } from '@atoll/contracts';
import { IsOptional, MinLength } from 'class-validator';
import { Variable } from './env.js';
import { readSettings } from './read-settings.js';

class Quay {
  @Variable('ATOLL_TIDES')
  @WholeNumber({ min: 1, max: 9 })
  tides: number = 1;

  @Variable('ATOLL_SECRET')
  @MinLength(16, { message: 'ATOLL_SECRET must be at least 16 characters long' })
  secret: string = '';
}

class Dock {
  @Variable('ATOLL_SECRET')
  @MinLength(16, { message: 'ATOLL_SECRET must be at least 16 characters long' })
  secret: string = '';

  @Variable('ATOLL_GATE')
  @IsOptional()
  gate: string | undefined = undefined;
}

class Basin {
  @Variable('ATOLL_DEPTH')
  @WholeNumber({ min: 1, max: 9 })
  depth: number = 5;
}

const refuse = (sentence: string) => () => Promise.reject(new Error(sentence));
const basin = {
  settings: Basin,
  checks: ({ depth }: Basin) => [
    refuse(`ATOLL_BED must be sand, at ${depth} m.`),
    refuse('ATOLL_SHORE must be there.'),
  ],
};

it('reads the settings of all that runs in a process', async () => {
  const [quay, dock] = await readSettings([{ settings: Quay }, { settings: Dock }], {
    ATOLL_SECRET: '0123456789abcdef',
    ATOLL_TIDES: '2',
  });
  expect(quay).toEqual(Object.assign(new Quay(), { tides: 2, secret: '0123456789abcdef' }));
  expect(dock.secret).toBe('0123456789abcdef');
});

it('names all that is wrong at once, a sentence a variable: what is missing, what is wrong, what does not fit', async () => {
  const attempt = readSettings([{ settings: Quay }, { settings: Dock }, basin], {
    ATOLL_TIDES: '0',
    ATOLL_DEPTH: 'deep',
  });
  await expect(attempt).rejects.toThrow(
    new Error(
      [
        'Invalid environment variables:',
        '  ATOLL_TIDES must be a whole number from 1 to 9',
        '  ATOLL_SECRET is missing: it must be at least 16 characters long',
        '  ATOLL_DEPTH must be a whole number from 1 to 9',
        '  ATOLL_BED must be sand, at 5 m.',
        '  ATOLL_SHORE must be there.',
      ].join('\n'),
    ),
  );
});

it('says of a variable that is there what is wrong with it, not that it is missing', async () => {
  await expect(readSettings([{ settings: Dock }], { ATOLL_SECRET: 'short' })).rejects.toThrow(
    new Error('Invalid environment variables:\n  ATOLL_SECRET must be at least 16 characters long'),
  );
});
