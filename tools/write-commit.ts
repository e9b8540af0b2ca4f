import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';

/**
 * Writes the commit that is built into `dist/commit`, for `version` of libs/service: `ATOLL_COMMIT`, which an image is
 * built with, else that of the repository in this folder. An empty file where there is no repository, or no git.
 */
const given = process.env.ATOLL_COMMIT ?? '';
if (!/^[0-9A-Za-z-]{0,40}$/.test(given)) throw new Error('ATOLL_COMMIT must be up to 40 letters, digits and hyphens.');
mkdirSync('dist', { recursive: true });
writeFileSync('dist/commit', given || commitHere());

/** A folder without a repository of its own may lie in that of something else. */
function commitHere(): string {
  if (!existsSync('.git')) return '';
  try {
    const output = execFileSync('git', ['rev-parse', '--short=8', 'HEAD'], { stdio: ['ignore', 'pipe', 'ignore'] });
    return output.toString().trim();
  } catch {
    return '';
  }
}
