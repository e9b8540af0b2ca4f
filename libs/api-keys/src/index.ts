export { createApiKey, digestApiKey, isWellFormedApiKey, maskApiKey } from './api-key.js';
export { derivedKey } from './derived-key.js';
export { DerivedTokens, refreshTokensOf } from './derived-token.js';
export { fingerprintOfPepper } from './pepper-fingerprint.js';
