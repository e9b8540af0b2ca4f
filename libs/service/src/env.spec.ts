import { describe, expect, it } from '@jest/globals';
import { WholeNumber } from '@atoll/contracts';
import { Type } from 'class-transformer';
import { IsInt, IsString, MinLength } from 'class-validator';
import { loadEnv, Variable, variablesOf } from './env.js';

class Env {
  @Type(() => Number)
  @IsInt()
  PORT: number = 3000;

  @IsString()
  @MinLength(16)
  SECRET: string = undefined as unknown as string;
}

class Settings {
  @Variable('ATOLL_TIDES')
  @Type(() => Number)
  @IsInt()
  tides: number = 1;

  ATOLL_BERTHS: string = '1';

  pauseMs: number = 5;
}

describe('the environment', () => {
  it('is read into the class, with defaults for what is absent or empty', () => {
    expect(loadEnv(Env, { SECRET: '0123456789abcdef', PORT: '' })).toEqual({ PORT: 3000, SECRET: '0123456789abcdef' });
    expect(loadEnv(Env, { SECRET: '0123456789abcdef', PORT: '8080', OTHER: 'x' }).PORT).toBe(8080);
  });

  it('sets a property by the variable that it names, and leaves alone what names none', () => {
    expect(loadEnv(Settings, { ATOLL_TIDES: '2', ATOLL_BERTHS: '3', pauseMs: '9' })).toEqual({
      tides: 2,
      ATOLL_BERTHS: '3',
      pauseMs: 5,
    });
    expect([...variablesOf(Settings).values()]).toEqual(['ATOLL_TIDES', 'ATOLL_BERTHS']);
    expect(() => loadEnv(Settings, { ATOLL_TIDES: 'x' })).toThrow('ATOLL_TIDES must be an integer number');
    expect(() => Variable('tides')).toThrow('is not a name for an environment variable');
  });

  it.each(['0', '31', '1.5', 'x'])(
    'names the variable of a number of days that is %s, and how many there may be',
    (given) => {
      class Cleaning {
        @Variable('ATOLL_TIDE_RETENTION')
        @WholeNumber({ min: 1, max: 30, unit: 'days' })
        tideRetentionDays: number = 7;
      }
      expect(loadEnv(Cleaning, { ATOLL_TIDE_RETENTION: '30' })).toEqual({ tideRetentionDays: 30 });
      const fault =
        'Invalid environment variables:\n  ATOLL_TIDE_RETENTION must be a whole number of days from 1 to 30';
      expect(() => loadEnv(Cleaning, { ATOLL_TIDE_RETENTION: given })).toThrow(new Error(fault));
    },
  );

  it('names every fault at once and shows no value', () => {
    const attempt = () => loadEnv(Env, { SECRET: 'hunter2', PORT: 'x' });
    expect(attempt).toThrow(/PORT must be an integer/);
    expect(attempt).toThrow(/SECRET must be longer/);
    expect(attempt).not.toThrow(/hunter2/);
  });
});
