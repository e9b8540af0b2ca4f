import type { FastifyInstance } from 'fastify';
import type { CallContext, UserCaller } from '@atoll/contracts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Where the request comes from. */
    address: string;
    /** How long its admission took, in milliseconds. */
    admissionMs: number;
    /** Who calls, once that is known. */
    caller: UserCaller | null;
    /** What goes with the call over the bus, once its input is found good. */
    callContext: CallContext | null;
    /** SHA-256 (hex) of the body as it came; only where an idempotency key needs it. */
    bodyDigest: string | null;
  }

  interface FastifyContextConfig {
    /** Answers without a caller. */
    public?: boolean;
    /** Takes no credential in a header: log-in and what belongs to it. */
    anonymous?: boolean;
    /** The session's cookie is a credential here. */
    takesCookie?: boolean;
    /** Users come here through links, also from other origins, so errors are shown as a page. */
    byLink?: boolean;
    /** Parameters of the query that are not declared are left out rather than refused. */
    ignoresUnknownQuery?: boolean;
    /** Ignores `Idempotency-Key`, whatever its form. */
    keepsNoAnswer?: boolean;
    /** May change its own caller: keys, roles, teams, zone. */
    changesCaller?: boolean;
    /** The number of the first page, of a listing. */
    firstPage?: 0 | 1;
    /** A listing that is given whole, and so has no other pages, unless `limit` is sent. */
    allWithoutLimit?: boolean;
    /** Only for the operator: any other caller is refused before the body is read. */
    operatorOnly?: boolean;
    /** Bytes that the body may have where it is not the usual limit. */
    maxBodyBytes?: number;
    /** How long the operation may take where it needs more than others, in milliseconds. */
    deadlineMs?: number;
    /**
     * Name of a field whose numbers are kept as they are written, each an `ExactNumber` where one of the body is long,
     * wherever in the body it stands: a double would round them.
     */
    exactNumbers?: string;
  }
}

/** Declares the fields up front, so that all requests have one shape. */
export function declareRequestState(instance: FastifyInstance): void {
  instance.decorateRequest('address', '');
  instance.decorateRequest('admissionMs', 0);
  instance.decorateRequest('caller', null);
  instance.decorateRequest('callContext', null);
  instance.decorateRequest('bodyDigest', null);
}
