/** Numbers, dates and money as a person reads them, by `Intl`, in the language of the browser. */

/** The decimals of the minor unit of a currency (ISO 4217): 2 of USD, none of JPY, 3 of KWD. */
export function minorDigits(currency: string): number {
  return new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits ?? 2;
}

/** `$1,234.50`; exact, whatever its size. It has the decimals of its currency, or up to `digits`. */
export function money(amount: string, currency: string, digits = minorDigits(currency)): string {
  return new Intl.NumberFormat(undefined, {
    style: 'currency',
    currency,
    currencyDisplay: 'narrowSymbol',
    minimumFractionDigits: Math.min(minorDigits(currency), digits),
    maximumFractionDigits: digits,
  }).format(amount as `${number}`);
}

/** The decimals of amounts that are a multiple of `step`: at least those of their currency, at most nine. */
export function decimalsOf(step: number, currency: string): number {
  let decimals = minorDigits(currency);
  const isWhole = (scaled: number) => Math.abs(scaled - Math.round(scaled)) < 1e-6;
  while (decimals < 9 && !isWhole(step * 10 ** decimals)) decimals += 1;
  return decimals;
}

/** A price: all its decimals, at least those of its currency. */
export function unitPrice(amount: string, currency: string): string {
  return money(amount, currency, 9);
}

/** With an explicit sign. */
export function change(amount: string, currency: string): string {
  return new Intl.NumberFormat(undefined, {
    style: 'currency',
    currency,
    currencyDisplay: 'narrowSymbol',
    signDisplay: 'exceptZero',
  }).format(amount as `${number}`);
}

export function quantity(value: number, digits = 2): string {
  return new Intl.NumberFormat(undefined, { maximumFractionDigits: digits }).format(value);
}

/** A decimal text as it is, with the marks of the language. */
export function decimal(text: string): string {
  return new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 9 }).format(
    text as `${number}`,
  );
}

export function percent(value: number, signed = false): string {
  return new Intl.NumberFormat(undefined, {
    style: 'percent',
    maximumFractionDigits: 1,
    signDisplay: signed ? 'exceptZero' : 'auto',
  }).format(value / 100);
}

export function gigabytes(value: number): string {
  return `${quantity(value)} GB`;
}

/** An instant in the user's zone: `22 Nov 2026, 08:51`. */
export function instant(text: string, zone: string): string {
  return new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short', timeZone: zone }).format(
    new Date(text),
  );
}

const logFormats = new Map<string, { day: Intl.DateTimeFormat; clock: Intl.DateTimeFormat }>();

/** An instant of a line of a log, to the millisecond: `22 Nov` and `08:51:07.250`. */
export function logInstant(text: string, zone: string): { day: string; clock: string } {
  let formats = logFormats.get(zone);
  if (!formats) {
    const clock = {
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      fractionalSecondDigits: 3,
      hourCycle: 'h23',
    } as const;
    formats = {
      day: new Intl.DateTimeFormat(undefined, { month: 'short', day: '2-digit', timeZone: zone }),
      clock: new Intl.DateTimeFormat(undefined, { ...clock, timeZone: zone }),
    };
    logFormats.set(zone, formats);
  }
  const at = new Date(text);
  return { day: formats.day.format(at), clock: formats.clock.format(at) };
}

export function day(text: string, zone: string): string {
  return new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: zone }).format(new Date(text));
}

const bucketFormats = {
  hourly: { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' },
  daily: { weekday: 'short', month: 'short', day: 'numeric' },
  weekly: { month: 'short', day: 'numeric', year: 'numeric' },
  monthly: { month: 'long', year: 'numeric' },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;

/**
 * The names of the buckets of a report, in the zone of that report: where a clock that goes back gives two the same,
 * each with its offset too.
 */
export function bucketNames(starts: readonly string[], interval: keyof typeof bucketFormats, zone: string): string[] {
  const naming = (options: Intl.DateTimeFormatOptions) => {
    const format = new Intl.DateTimeFormat(undefined, { ...bucketFormats[interval], ...options, timeZone: zone });
    return (start: string) => format.format(new Date(start));
  };
  const names = starts.map(naming({}));
  const withOffset = naming({ timeZoneName: 'shortOffset' });
  return names.map((name, at) =>
    name === names[at - 1] || name === names[at + 1] ? withOffset(starts[at] ?? '') : name,
  );
}

/** `2026-10` as a month's name. */
export function monthName(month: string): string {
  return new Intl.DateTimeFormat(undefined, { month: 'long', year: 'numeric', timeZone: 'UTC' }).format(
    new Date(`${month}-15T00:00:00Z`),
  );
}

const kinds: Record<string, string> = {
  gpuaas_pool: 'GPU pools',
  pod: 'Pods',
  vm: 'Virtual machines',
  baremetal: 'Bare metal',
  shared_storage: 'Shared storage',
};

export function kindName(kind: string): string {
  return kinds[kind] ?? kind;
}

const roles: Record<string, string> = {
  platform_admin: 'Operator',
  team_owner: 'Owner',
  team_admin: 'Admin',
  member: 'Member',
  billing_viewer: 'Billing viewer',
  viewer: 'Viewer',
  user: 'User',
};

export function roleName(role: string): string {
  return roles[role] ?? role;
}
