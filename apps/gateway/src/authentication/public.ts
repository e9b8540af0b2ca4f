import { applyDecorators, SetMetadata } from '@nestjs/common';
import { ApiSecurity } from '@nestjs/swagger';
import { ConfigureRoute } from '../http/route-config.js';

export const publicMetadata = 'atoll:public';

/**
 * Log-in and what belongs to it: no credential is asked for, the address is counted, and a request of a page of another
 * origin is refused. With `byLink` such a request is taken, and its errors are pages: a person opens it by a link. With
 * `takesCookie` the cookie of a session is a credential, and the session is counted in place of the address.
 */
export const Anonymous = ({ takesCookie = false, byLink = false } = {}) =>
  applyDecorators(
    SetMetadata(publicMetadata, true),
    ConfigureRoute({ anonymous: true, takesCookie, byLink }),
    ApiSecurity({}),
  );

/** Answers without a caller: no credential is asked for, none is looked at, no rate limit counts. */
export const Public = () =>
  applyDecorators(SetMetadata(publicMetadata, true), ConfigureRoute({ public: true }), ApiSecurity({}));
