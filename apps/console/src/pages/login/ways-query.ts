import { queryOptions } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.js';

/** By what people can log in here, besides a password. */
export const waysQuery = queryOptions({
  queryKey: ['ways'],
  queryFn: () => answerOf(api.GET('/api/user/sso')),
  staleTime: Infinity,
});
