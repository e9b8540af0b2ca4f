import { createProjectGraphAsync } from '@nx/devkit';
import nx from '@nx/eslint-plugin';

// The boundary rule reads Nx's graph from its cache, and skips itself silently where there is none. It is made in this
// process, which takes less than to start others for it.
process.env['NX_DAEMON'] ??= 'false';
process.env['NX_ISOLATE_PLUGINS'] ??= 'false';
await createProjectGraphAsync();

export { nx as default };
