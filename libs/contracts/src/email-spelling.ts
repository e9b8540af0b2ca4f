/** Of what is longer nothing is an address, whichever way it is spelt; a domain has 253 at most (RFC 1035). */
const longestSpelling = 1_000;
const domainName = /^[\p{L}\p{M}\p{N}.-]{1,253}$/u;

/** The one spelling of an e-mail address, as `Email` has it. What is no address stays one that `Email` refuses. */
export function emailSpelling(text: string): string {
  if (text.length > longestSpelling) return text;
  const [before, domain] = [text.slice(0, text.lastIndexOf('@') + 1), text.slice(text.lastIndexOf('@') + 1)];
  const isForeign =
    before !== '' && domainName.test(domain) && /\P{ASCII}/u.test(domain) && URL.canParse(`http://${domain}`);
  const spelt = isForeign ? before + new URL(`http://${domain}`).hostname : text;
  return spelt.normalize('NFC').toLowerCase();
}
