import { useEffect, type ReactNode } from 'react';
import icon from '../../icon.svg';

/** The frame of the pages for users who are not logged in. */
export function LoginCard({ title, lead, children }: { title: string; lead: ReactNode; children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Atoll`;
  }, [title]);
  return (
    <main className="login">
      <div className="login-card">
        <header className="stack">
          <img src={icon} alt="" width="44" height="44" />
          <div>
            <h1>{title}</h1>
            <p className="quiet">{lead}</p>
          </div>
        </header>
        {children}
      </div>
    </main>
  );
}
