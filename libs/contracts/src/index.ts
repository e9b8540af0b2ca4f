export { emailAddress } from './email-address.js';
export { emailSpelling } from './email-spelling.js';
export {
  growthRefusal,
  holderOf,
  isPlatformAdmin,
  notFound,
  type Permission,
  permissions,
  personOf,
  replacedKeyRefusal,
  requirePermission,
  requirePlatformAdmin,
  requireFreshLogIn,
  requireService,
  requireUser,
  requireWholeUser,
  freshLogInMinutes,
  teamsThatAllow,
} from './access.js';
export {
  type CallContext,
  type Caller,
  type CallerCredential,
  type Idempotency,
  type TeamRole,
  teamRoles,
  type UserCaller,
} from './caller.js';
export {
  broadcast,
  type BroadcastType,
  contract,
  declaredEvents,
  event,
  type EventType,
  operation,
  type Operation,
  type Wire,
} from './contract.js';
export { eventLog, EventsAfter, EventsPage, PublishedEvent } from './event-log.js';
export { ExactNumber } from './exact-number.js';
export { DecimalText, Email, Flag, ListOf, Nested, OneOf, Text, WholeNumber } from './fields.js';
export { NumberedId, numberedIdPattern, NumberedIds, Uuid } from './id-fields.js';
export { hostName } from './host-name.js';
export { imageReference } from './image-reference.js';
export {
  addressAllowed,
  addressInRanges,
  type AddressRange,
  IpWhitelist,
  networkOf,
  parseAddressRange,
  whitelistEntries,
  whitelistRanges,
} from './ip-whitelist.js';
export { innermostAddress, isMetadataAddress } from './metadata-address.js';
export {
  allOrPage,
  IncludeEnded,
  Nothing,
  PageFromOne,
  PageFromOneOrAll,
  PageFromZero,
  pageWindow,
  Pagination,
  windowIfLimited,
} from './page.js';
export { TeamPath } from './team-path.js';
export { isLine, textPatterns } from './text.js';
export { unknownFieldCode } from './unknown-field.js';
export { readWire, validateWire, type WireRules } from './validate-wire.js';
