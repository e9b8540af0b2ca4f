/** No form: its answer leads to another origin, which the policy of this page refuses to forms. */
export function Providers({ providers }: { providers: readonly { id: string; name: string }[] }) {
  return providers.map(({ id, name }) => (
    <a key={id} className="button" href={`/api/user/sso/${encodeURIComponent(id)}`}>
      Log in with {name}
    </a>
  ));
}
