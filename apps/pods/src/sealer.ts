import { Sealer } from '@atoll/seal';
import type { Provider } from '@nestjs/common';
import { PodsSettings } from './pods-settings.js';

/** Secrets in the rows of this service are sealed by it. */
export const sealer: Provider = {
  provide: Sealer,
  inject: [PodsSettings],
  useFactory: ({ sealKeys }: PodsSettings) => new Sealer(sealKeys),
};
