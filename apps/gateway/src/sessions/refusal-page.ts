/** No script, no style, no frame: a sentence and a link. */
export const refusalHeaders = {
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};

/** What a person sees who cannot be logged in by a provider. */
export function refusalPage(sentence: string): string {
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
</main>
</body>
</html>
`;
}
