import { createContext, use } from 'react';
import type { User } from './access.js';

export const UserContext = createContext<User | null>(null);

/** Who is logged in; pages stand inside the shell, which has read it. */
export function useUser(): User {
  const user = use(UserContext);
  if (!user) throw new Error('There is no user outside of the shell.');
  return user;
}
