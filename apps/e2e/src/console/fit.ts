import { expect } from '@jest/globals';
import type { Page } from 'playwright-core';
import { picture, violations } from './browser.js';

/** No violation in either theme, at a desk, on a tablet and on a telephone; nothing is wider than the screen. */
export async function isFit(page: Page, name: string): Promise<void> {
  for (const theme of ['Light', 'Dark']) {
    await page.getByRole('radio', { name: theme }).click();
    expect(await violations(page, [], theme === 'Light' ? 'in all' : 'in its colours')).toEqual([]);
    await picture(page, `story-${name}-1440-${theme}`);
  }
  for (const width of [768, 360]) {
    await page.setViewportSize({ width, height: 900 });
    expect(Number(await page.evaluate('document.documentElement.scrollWidth'))).toBeLessThanOrEqual(width);
    await picture(page, `story-${name}-${width}`);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
}
