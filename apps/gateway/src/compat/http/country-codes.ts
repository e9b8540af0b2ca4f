const letters = Array.from({ length: 26 }, (_, at) => String.fromCharCode(65 + at));
const names = new Intl.DisplayNames(['en'], { type: 'region', fallback: 'none' });
let codes: Map<string, string> | undefined;

/** The code (ISO 3166-1 alpha-2) of a country that is named in English or by its code; empty where it is not known. */
export function countryCodeOf(country: string | null): string {
  const wanted = (country ?? '').trim();
  if (/^[A-Za-z]{2}$/.test(wanted)) return wanted.toUpperCase();
  codes ??= new Map(
    letters.flatMap((one) => letters.map((other) => [names.of(one + other)?.toLowerCase() ?? '', one + other])),
  );
  return (wanted !== '' && codes.get(wanted.toLowerCase())) || '';
}
