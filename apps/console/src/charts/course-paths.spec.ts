import { describe, expect, it } from '@jest/globals';
import { coursePaths } from './course-paths.js';

const size = { width: 100, height: 12 };

describe('the line of a course', () => {
  it('has 0 at the bottom and 100 at the top, and stays within its box', () => {
    expect(coursePaths([0, 50, 100], size)).toEqual({ stretches: ['M0.0 11.0L50.0 6.0L100.0 1.0'], dots: [] });
    expect(coursePaths([-5, 300], size).stretches).toEqual(['M0.0 11.0L100.0 1.0']);
  });

  it('has a gap where there is no figure, and a dot for one that is alone', () => {
    expect(coursePaths([null, 0, 0, null, 100], size)).toEqual({
      stretches: ['M25.0 11.0L50.0 11.0'],
      dots: ['M100.0 1.0h0'],
    });
    expect(coursePaths([null, null], size)).toEqual({ stretches: [], dots: [] });
    expect(coursePaths([], size)).toEqual({ stretches: [], dots: [] });
  });
});
