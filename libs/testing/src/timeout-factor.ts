/**
 * How much longer than on an idle machine specs wait for what must come: `ATOLL_TEST_TIMEOUT_FACTOR`, 1 unless given.
 */
export const timeoutFactor = Math.max(1, Number(process.env.ATOLL_TEST_TIMEOUT_FACTOR ?? 1) || 1);
