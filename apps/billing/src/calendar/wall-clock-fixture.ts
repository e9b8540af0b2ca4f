const secondMs = 1000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/**
 * What the clocks of a zone show, by the fields that Intl writes: an oracle that knows neither offsets nor changes of
 * them.
 */
export class WallClock {
  private readonly fields: Intl.DateTimeFormat;

  constructor(zone: string) {
    // Sweden writes 2026-10-01 00:00:00.
    this.fields = new Intl.DateTimeFormat('sv-SE', {
      timeZone: zone,
      hourCycle: 'h23',
      dateStyle: 'short',
      timeStyle: 'medium',
    });
  }

  /** The wall-clock time at a whole second, as Date.UTC would have it. */
  at(ms: number): number {
    return Date.parse(`${this.fields.format(ms).replace(' ', 'T')}Z`);
  }

  /** Whether the clock was changed at this instant. */
  changesAt(ms: number): boolean {
    return this.at(ms) - this.at(ms - secondMs) !== secondMs;
  }

  /**
   * The first instant at which the clock shows `wallMs` or later, by looking at it minute by minute, and in the minute
   * found second by second. Since 2000 clocks have been changed at full minutes only, so that within one they run
   * evenly.
   */
  firstAt(wallMs: number): number {
    // No clock has been changed twice within two days since 2015, nor by three hours.
    const aheadMs = Math.max(...[wallMs - dayMs, wallMs + dayMs].map((nearMs) => this.at(nearMs) - nearMs));
    let ms = Math.floor((wallMs - aheadMs) / minuteMs) * minuteMs - 3 * hourMs;
    while (this.at(ms + minuteMs - secondMs) < wallMs) ms += minuteMs;
    while (this.at(ms) < wallMs) ms += secondMs;
    return ms;
  }
}

/** As the zone's clock would be read out: 2026-10-01T00:00:00. */
export function wall(text: string): number {
  return Date.parse(`${text}Z`);
}
