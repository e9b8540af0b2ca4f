import { describe, expect, it } from '@jest/globals';
import { Type } from 'class-transformer';
import { IsInt, IsString, MinLength } from 'class-validator';
import { loadEnv } from './env.js';

class Env {
  @Type(() => Number)
  @IsInt()
  PORT: number = 3000;

  @IsString()
  @MinLength(16)
  SECRET: string = undefined as unknown as string;
}

describe('the environment', () => {
  it('is read into the class, with defaults for what is absent or empty', () => {
    expect(loadEnv(Env, { SECRET: '0123456789abcdef', PORT: '' })).toEqual({ PORT: 3000, SECRET: '0123456789abcdef' });
    expect(loadEnv(Env, { SECRET: '0123456789abcdef', PORT: '8080', OTHER: 'x' }).PORT).toBe(8080);
  });

  it('names every fault at once and shows no value', () => {
    const attempt = () => loadEnv(Env, { SECRET: 'hunter2', PORT: 'x' });
    expect(attempt).toThrow(/PORT must be an integer/);
    expect(attempt).toThrow(/SECRET must be longer/);
    expect(attempt).not.toThrow(/hunter2/);
  });
});
