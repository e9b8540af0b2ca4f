import { Controller, Get, Header } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { Public } from '../authentication/public.js';
import { errorKinds } from '../errors/error-kinds.js';

/** Where the `type` of every problem leads. */
@ApiExcludeController()
@Controller('docs/errors')
export class ErrorsController {
  readonly #page = errorsPage();

  @Get()
  @Public()
  @Header('content-type', 'text/html; charset=utf-8')
  errors(): string {
    return this.#page;
  }
}

function errorsPage(): string {
  const sections = Object.entries(errorKinds).map(
    ([code, { status, title, advice }]) =>
      `<section id="${code}"><h2>${title}</h2><p><code>${code}</code>, status ${status}</p><p>${advice.replace(/`([^`]*)`/g, (_match, text: string) => `<code>${escaped(text)}</code>`)}</p></section>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Atoll API: errors</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:45rem;margin:2rem auto;padding:0 1rem}section:target{background:#fff6d6}h2{margin-bottom:0}</style>
</head>
<body>
<h1>Errors</h1>
<p>Every error of the API is a problem (RFC 9457) whose <code>code</code> is one of these.</p>
${sections.join('\n')}
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
