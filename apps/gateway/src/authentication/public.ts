import { applyDecorators, SetMetadata } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';

export const publicMetadata = 'atoll:public';

/** Answers without a caller: no credential is asked for, none is looked at, no rate limit counts. */
export const Public = () => applyDecorators(SetMetadata(publicMetadata, true), RouteConfig({ public: true }));
