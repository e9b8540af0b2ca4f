import { useEffect, useId, type ReactNode } from 'react';
import { RowHead } from './button.js';

interface PageProps {
  title: string;
  lead?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

/** A page: its name in the tab and as its only first heading, what can be done, and its content. */
export function Page({ title, lead, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Atoll`;
  }, [title]);
  return (
    <>
      <header className="page-head">
        <div>
          <h1 className="given">{title}</h1>
          {lead !== undefined && <p>{lead}</p>}
        </div>
        {actions !== undefined && <div className="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

interface CardProps {
  title: string;
  /** It is one of several alike: its buttons are named with its title. */
  isRow?: boolean;
  actions?: ReactNode;
  children: ReactNode;
}

export function Card({ title, isRow = false, actions, children }: CardProps) {
  const id = useId();
  return (
    <section className="card" aria-label={title}>
      <header>
        <h2 id={id} className="given">
          {title}
        </h2>
        <RowHead value={isRow ? id : undefined}>
          {actions !== undefined && <div className="actions">{actions}</div>}
        </RowHead>
      </header>
      {children}
    </section>
  );
}

/** An entry of a list: its buttons are named with its head. */
export function ListRow({ head, children }: { head: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <li>
      <span className="given" id={id}>
        {head}
      </span>
      <RowHead value={id}>{children}</RowHead>
    </li>
  );
}

interface FigureProps {
  name: string;
  value: ReactNode;
  hint?: ReactNode;
  isLarge?: boolean;
  /** No number, but words or an instant. */
  isText?: boolean;
}

export function Figure({ name, value, hint, isLarge = false, isText = false }: FigureProps) {
  return (
    <div className="figure" {...(isLarge && { 'data-large': true })} {...(isText && { 'data-text': true })}>
      <dt>{name}</dt>
      <dd>{value}</dd>
      {hint !== undefined && <dd className="hint">{hint}</dd>}
    </div>
  );
}
