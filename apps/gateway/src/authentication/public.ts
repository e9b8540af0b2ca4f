import { applyDecorators, SetMetadata } from '@nestjs/common';
import { ConfigureRoute } from '../requests/route-config.js';

export const publicMetadata = 'atoll:public';

/** Answers without a caller: no credential is asked for, none is looked at, no rate limit counts. */
export const Public = () => applyDecorators(SetMetadata(publicMetadata, true), ConfigureRoute({ public: true }));
