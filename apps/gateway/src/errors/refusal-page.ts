import type { AppError } from '@atoll/errors';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { problemHeaders, statusOf } from './problem.js';

/** No script, no style, no frame: a sentence and a link. */
const pageHeaders = {
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
  'content-type': 'text/html; charset=utf-8',
};

/**
 * Answers a request that a person made by following a link: the status and the headers of the problem, and a page in
 * its place.
 */
export function sendRefusalPage({ id }: FastifyRequest, reply: FastifyReply, error: AppError): void {
  reply
    .code(statusOf(error))
    .headers({ ...problemHeaders(error), ...pageHeaders })
    .send(refusalPage(error.message, id));
}

/** The page for a user whom a provider could not log in. */
function refusalPage(sentence: string, requestId: string): string {
  const escaped = sentence.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>You are not logged in</title>
</head>
<body>
<main>
<h1>You are not logged in</h1>
<p>${escaped}</p>
<p><a href="/sign-in">Log in another way</a></p>
<p><small>Request ${requestId}</small></p>
</main>
</body>
</html>
`;
}
