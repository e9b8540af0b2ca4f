/** Life of an access token in seconds. */
export const accessSeconds = 900;

/** Sessions of one user that live at once: one more ends the one that was used the longest ago. */
export const maxSessions = 100;

/**
 * How long the refresh token before the newest is still answered to whoever sends it: for tabs of one browser that
 * refresh at once, and for a client that lost an answer and names no attempt.
 */
export const graceSeconds = 10;

/** SQL: whether the session `s` is alive. */
export const isAlive = `s.ended_at IS NULL AND s.idle_until > now() AND s.expires_at > now()`;
