const page = (title: string, script: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
${
  script === ''
    ? ''
    : `<script type="module" src="/pages/${script}"></script>
`
}</head>
<body>
<main>
<h1>${title}</h1>
${body}
<p id="message" role="status"></p>
</main>
</body>
</html>
`;

export const logInPage = page(
  'Log in to Atoll',
  'log-in-page.js',
  `<section id="out" hidden>
<form id="log-in">
<p><label>E-mail address <input id="email" type="email" autocomplete="username" required></label></p>
<p><label>Password <input id="password" type="password" autocomplete="current-password" required></label></p>
<p><button>Log in</button></p>
</form>
<p><button id="passkey">Log in with a passkey</button></p>
<p id="providers"></p>
</section>
<form id="second" hidden>
<p><label>Code <input id="code" autocomplete="one-time-code" required></label></p>
<p><button>Log in</button></p>
</form>
<section id="in" hidden>
<p>Logged in as <span id="who"></span>.</p>
<p><button id="check">Ask the server who I am</button> <button id="add-passkey">Add a passkey</button>
<button id="log-out">Log out</button></p>
</section>`,
);

export const linkPage = page(
  'Set your password',
  'link-page.js',
  `<form id="form">
<p><label>Name, if you are new <input id="name" autocomplete="name" maxlength="100"></label></p>
<p><label>Password, at least 12 characters <input id="password" type="password" autocomplete="new-password" minlength="12" required></label></p>
<p>If you have an account already, enter the password it has.</p>
<p><button>Set it</button></p>
</form>
<p id="log-in" hidden><a href="/login">Log in</a></p>`,
);

/** What a person sees who cannot be logged in by a provider. */
export function refusalPage(sentence: string): string {
  const escaped = sentence.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  return page('You are not logged in', '', `<p>${escaped}</p>\n<p><a href="/login">Log in another way</a></p>`);
}
