import { createContext, use } from 'react';
import type { User } from './access.js';

export const UserContext = createContext<User | null>(null);

/** The logged-in user; the shell, which contains all pages, has read it. */
export function useUser(): User {
  const user = use(UserContext);
  if (!user) throw new Error('There is no user outside of the shell.');
  return user;
}
